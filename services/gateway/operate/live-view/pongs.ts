import type { WebSocket } from 'ws'

/** Unsent bytes beyond which a ping gets no pong. */
const MAX_UNSENT_BYTES = 64 * 1024

/** Answers pings (RFC 6455, section 5.5.2), except of a peer that does not read: its pongs would fill the memory. */
export function withPongs(webSocket: WebSocket): void {
  webSocket.on('ping', (data: Buffer) => {
    if (webSocket.bufferedAmount <= MAX_UNSENT_BYTES) webSocket.pong(data, undefined, () => {})
  })
}
