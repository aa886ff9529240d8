/*! noVNC 1.7.0, (c) the noVNC authors, Mozilla Public License 2.0; its source is the package @novnc/novnc of npm, github.com/novnc/noVNC */
import RFB from '@novnc/novnc'

/** Loaded only by the page of a view: shows what arrives, and sends what the person does unless `isReadOnly`. Returns a function that ends it. */
export function showScreen(
  target: HTMLElement,
  socket: WebSocket,
  { isReadOnly, opened }: { readonly isReadOnly: boolean; readonly opened: () => void },
): () => void {
  let screen: RFB | null = null
  const end = () => {
    screen?.disconnect()
    screen = null
  }
  // Before the handler of noVNC, which reports a close that it does not expect as an error of the page.
  socket.addEventListener('close', end)
  screen = new RFB(target, socket, { shared: true })
  // The gateway drops the input of who only watches; this spares the messages.
  screen.viewOnly = isReadOnly
  screen.scaleViewport = true
  screen.focusOnClick = true
  screen.addEventListener('connect', () => {
    // The sandbox draws its pointer, for which noVNC hides that of the person, who would not see where a click goes before the sandbox answers.
    const canvas = target.querySelector('canvas')
    if (canvas !== null) canvas.style.cursor = isReadOnly ? 'default' : 'crosshair'
    opened()
  })
  return end
}
