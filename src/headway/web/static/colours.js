// The choice of colours, and what happens when the window gets another width.
const theme = document.getElementById('theme');
theme.addEventListener('change', () => { paint(theme.value); try { localStorage.setItem('headway-theme', theme.value); } catch { /* private window */ } });
function paint(value) {
  document.documentElement.dataset.theme = value;
  theme.value = value;
}
try { paint(localStorage.getItem('headway-theme') ?? 'auto'); } catch { paint('auto'); }

export function widened(act) {
  let width = window.innerWidth;
  let resizing;
  window.addEventListener('resize', () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      if (Math.abs(window.innerWidth - width) < 24) return;
      width = window.innerWidth;
      act();
    }, 250);
  });
}
