// A page of a folder (file://) may start no worker: the search then runs in a hidden frame, which this gives the face of one.
if (location.protocol === "file:") window.Worker = class {
  constructor(address) {
    const frame = Object.assign(document.createElement("iframe"), { hidden: true })
    document.body.append(frame)
    const inner = this.inner = frame.contentWindow
    inner.postMessage = data => setTimeout(() => this.onmessage?.({ data }))
    this.ready = new Promise((done, failed) => {
      inner.document.body.append(Object.assign(inner.document.createElement("script"), { src: address, onload: done, onerror: failed }))
    })
  }
  postMessage(data) { this.ready.then(() => this.inner.onmessage({ data }), error => this.onerror?.(error)) }
  terminate() {}
}
