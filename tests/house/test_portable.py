"""No call that Windows lacks on the way of an answer: names of the standard library, paths of one system, texts in the locale's coding.

The names are those that typeshed (the stubs that pyright ships) leaves out where `sys.platform` is win32; `pyright
--pythonplatform Windows` finds the same in `src`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from support.source import files, module_name, tree_of

MODULES = {"crypt", "fcntl", "grp", "nis", "posix", "pty", "pwd", "readline", "resource", "spwd", "syslog", "termios", "tty"}
LACKING = """
os: O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC WEXITSTATUS WIFEXITED WIFSIGNALED WNOHANG WTERMSIG
  chflags chown chroot confstr copy_file_range ctermid environb eventfd fchdir fchown fdatasync fork forkpty fpathconf fstatvfs fwalk
  getegid getenvb geteuid getgid getgrouplist getgroups getloadavg getpgid getpgrp getpriority getrandom getresgid getresuid getsid getuid
  getxattr initgroups killpg lchflags lchown listxattr lockf login_tty major makedev memfd_create minor mkfifo mknod nice openpty pathconf
  pidfd_open pipe2 posix_fadvise posix_fallocate posix_openpt posix_spawn posix_spawnp pread preadv pwrite pwritev readv register_at_fork
  removexattr sched_getaffinity sched_getparam sched_getscheduler sched_setaffinity sched_setscheduler sched_yield sendfile set_blocking
  setegid seteuid setgid setgroups setns setpgid setpgrp setpriority setregid setresgid setresuid setreuid setsid setuid setxattr spawnlp
  spawnlpe spawnvp spawnvpe splice statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname unshare wait wait3 wait4 waitid writev
signal: SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGUSR1 SIGUSR2 SIGWINCH SIGXCPU
  alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
select: epoll kqueue poll
socket: AF_UNIX SO_REUSEPORT recv_fds send_fds
time: CLOCK_MONOTONIC clock_getres clock_gettime tzset
"""
NAMES = {line.partition(":")[0]: {*line.partition(":")[2].split()} for line in LACKING.replace("\n  ", " ").split("\n") if line}
ROOTED = re.compile(r"/(dev|etc|opt|proc|sys|tmp|usr|var)(/|$)")
TEXTS = {"read_text", "write_text", "open"}
NO_TEXT = {"os", "webbrowser", "desk"}  # whose open opens no text
# Each with what keeps it from being called where it is not there.
GUARDED = {
    ("web.worker", "resource"): "within suppress(ImportError): without the module a worker has no limit of memory",
    ("web.desk", "os.killpg"): "asked for with hasattr: elsewhere a worker alone is ended",
    ("core.code_store", "os.geteuid"): "asked for with hasattr: Windows has no owners by number",
    ("core.cores", "os.sched_getaffinity"): "asked for with hasattr: elsewhere all cores count",
    ("core.cores", "/sys/fs/cgroup/cpu.max"): "read where it is there: a process without such a limit has none",
    ("core.cores", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"): "as above", ("core.cores", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"): "as above",
    ("reality.lab.workers", "/dev/shm"): "asked about where it is there: other systems limit shared memory otherwise",
    ("answers.lab", "os.getloadavg"): "asked for with hasattr: elsewhere the load is not known",
    ("study.lock", "/proc/self/ns/pid"): "within suppress(OSError): without it the network card names the machine",
    ("study.lock", "/proc/sys/kernel/random/boot_id"): "as above",
    ("core.user_file", "os.set_blocking"): "of a named pipe alone, which Windows does not have",
    ("core.user_file", "/dev/stdin|/dev/fd/\\d+|/proc/(?:self|\\d+)/fd/\\d+"): "names of pipes that a shell opens",
    ("reality.here", "/proc/cpuinfo"): "read where it is there: other systems are asked by their tools",
    ("reality.here", "/proc/meminfo"): "as above",
    ("reality.here", "/sys/fs/cgroup/memory.max"): "as above", ("reality.here", "/sys/fs/cgroup/memory/memory.limit_in_bytes"): "as above",
    ("reality.lab.reversible_memory", "/proc/self/status"): "read where it is there: elsewhere a peak may not be known",
    ("reality.lab.reversible_memory", "resource"): "of macOS alone",
    ("serving.launch.kubernetes", "/dev/shm"): "of the container that a manifest describes",
}  # fmt: skip


def lacking(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of what Windows lacks in a file; docstrings apart."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            names = NAMES.get(node.module or "", set())
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names if alias.name in names)
            if node.module in MODULES:
                yield node.lineno, node.module
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in NAMES.get(node.value.id, ()):
            yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose and ROOTED.match(node.value):
            yield node.lineno, node.value
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, words) for words in of_call(node))


def of_call(node: ast.Call) -> Iterator[str]:
    """What a call asks of one system: fork, a shell, a text in the coding of the locale, a format of its C library."""
    words = {keyword.arg: keyword.value for keyword in node.keywords}
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    texts = [value.value for value in (*node.args, *words.values()) if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    if name in ("get_context", "set_start_method") and {*texts} & {"fork", "forkserver"}:
        yield f"{name}({texts[0]})"
    if "shell" in words and ast.unparse(words["shell"]) != "False":
        yield "shell=True"
    if name == "strftime" and any("%-" in text for text in texts):
        yield "strftime %-"
    owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    is_bytes = name == "open" and any(re.fullmatch("[rwxab+]*b[rwxab+]*", text) for text in texts)
    if name in TEXTS and owner not in NO_TEXT and "encoding" not in words and not is_bytes:
        yield f"{name} without encoding"



def test_package__calls_nothing_that_windows_lacks() -> None:
    found = {(module_name(path), name): line for path in files() for line, name in lacking(tree_of(path))}
    assert {key: line for key, line in found.items() if key not in GUARDED} == {}, "guard it, and say here how"
    assert set(GUARDED) <= set(found), "a guard without a call"


def test_lint__finds_each_kind() -> None:
    text = (
        "import fcntl\nimport os\nos.fork()\nfrom signal import SIGALRM\np = '/var/x'\nget_context('fork')\nrun('ls', shell=True)\n"
        "day.strftime('%-d')\npath.read_text()\nopen('x')\nopen('x', 'rb')\npath.write_text('y', encoding='utf-8')\n"
    )
    assert [line for line, _ in sorted(lacking(ast.parse(text)))] == [1, 3, 4, 5, 6, 7, 8, 9, 10]
