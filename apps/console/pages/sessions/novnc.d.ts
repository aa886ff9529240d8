/** The part of noVNC that the console uses; the package has no types. */
declare module '@novnc/novnc' {
  class RFB extends EventTarget {
    constructor(target: HTMLElement, channel: WebSocket, options: { readonly shared: boolean })
    viewOnly: boolean
    scaleViewport: boolean
    focusOnClick: boolean
    disconnect(): void
  }

  // biome-ignore lint/style/noDefaultExport: the package exports it so
  export { RFB as default }
}
