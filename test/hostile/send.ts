import { connect } from 'node:net'

/** How long one request may go on without a response, in milliseconds: a call under an approval rule waits. */
const PATIENCE_MS = 3_000

/** Sends bytes on a connection and resolves with the status of the response; `none`: there was none in time, or the connection ended. */
export function send(url: string, bytes: Buffer): Promise<string> {
  const { port, hostname } = new URL(url)
  return new Promise((resolve) => {
    let response = ''
    const socket = connect(Number(port), hostname)
    const finish = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(/^HTTP\/1\.1 (\d+)/.exec(response)?.[1] ?? 'none')
    }
    const timer = setTimeout(finish, PATIENCE_MS)
    socket
      .on('data', (chunk) => {
        response += chunk.toString('latin1')
      })
      .on('error', () => {})
      .on('close', finish)
    socket.write(bytes)
  })
}
