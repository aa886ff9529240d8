import net from 'node:net'

/** Sends bytes as they are, for requests that no client would write, and answers the first of what comes back. */
export function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = net.connect(port, '127.0.0.1', () => socket.write(text))
    const done = () => {
      socket.destroy()
      resolve(Buffer.concat(chunks).toString())
    }
    socket.on('data', (chunk) => {
      chunks.push(Buffer.from(chunk))
      if (Buffer.concat(chunks).includes('\r\n\r\n')) done()
    })
    socket.on('close', done)
    socket.on('error', done)
  })
}
