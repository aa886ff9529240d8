import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Request } from './request.ts'
import { ServerResponseWithId } from './server-response.ts'

/** The connection of a request that was upgraded. The handler answers 101, or destroys it. */
export interface UpgradedConnection {
  /** Unread after the head. It already has an error listener. */
  readonly socket: Socket
  /** Bytes that arrived with the head. */
  readonly head: Buffer
}

interface Offer extends UpgradedConnection {
  readonly response: ServerResponseWithId
  readonly onTaken: () => void
}

const offers = new WeakMap<IncomingMessage, Offer>()

/** Whether a request could become a WebSocket (RFC 6455, section 4.1). All others are answered over HTTP/1.1. */
export function isWebSocketRequest({ method, httpVersion, headers }: IncomingMessage): boolean {
  const { upgrade, connection = '', 'content-length': length, 'transfer-encoding': coding } = headers
  if (method !== 'GET' || httpVersion !== '1.1' || upgrade?.toLowerCase() !== 'websocket') return false
  const options = connection.toLowerCase().split(',')
  if (!options.some((option) => option.trim() === 'upgrade')) return false
  // Where its body ends, and the other protocol begins, is not for this request to say.
  return coding === undefined && (length === undefined || length === '0')
}

/**
 * Returns a response for a request whose parser has left the connection. `onTaken`: the connection belongs to the handler from now on, and has no
 * response any more.
 */
export function offerUpgrade(request: Request, head: Buffer, onTaken: () => void): ServerResponseWithId {
  const { socket } = request
  const response = new ServerResponseWithId(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  offers.set(request, { socket, head, response, onTaken })
  return response
}

/** Takes the connection of a request that may be upgraded; null if it may not be, or was taken or answered already. */
export function takeUpgrade(request: IncomingMessage): UpgradedConnection | null {
  const offer = offers.get(request)
  if (offer === undefined || offer.response.headersSent || offer.socket.destroyed) return null
  offers.delete(request)
  const { socket, head, response, onTaken } = offer
  response.detachSocket(socket)
  onTaken()
  return { socket, head }
}

/** Whether `takeUpgrade` would return the connection. */
export function isUpgradable(request: IncomingMessage): boolean {
  return offers.has(request)
}
