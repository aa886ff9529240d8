/** Keeps the process alive until the returned function is called: the clock's timers do not. */
export function keepAwake(): () => void {
  const { port1 } = new MessageChannel()
  port1.ref()
  return () => port1.close()
}
