import type { Dice } from './dice.ts'

/** A request as bytes, and what may come back on its connection. */
export interface Drawn {
  readonly bytes: Buffer
  /** The only statuses that may be answered; 0: the connection may also close without any. */
  readonly statuses: readonly number[]
  /** Most answers that may come, 100 Continue not counted. */
  readonly answers: number
}

/** Draws a request of one kind. */
export type Kind = (dice: Dice, token: string) => Drawn

/** The tool of every call that no server must ever see. */
export const CANARY = 'canaries'

const PATH = '/mcp/notes'

/** A tool call as text. */
export function callOf(tool: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":{}}}`
}

/** Header lines of a valid call, without Content-Length. */
export function headLines(token: string): string[] {
  return [
    'Host: localhost',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
  ]
}

/** A whole request out of its parts; `lines` replace the usual ones. */
export function written(parts: { first?: string; lines: readonly string[]; body?: string | Buffer }): Buffer {
  const { first = `POST ${PATH} HTTP/1.1`, lines, body = '' } = parts
  const head = Buffer.from(`${[first, ...lines].join('\r\n')}\r\n\r\n`, 'latin1')
  return Buffer.concat([head, typeof body === 'string' ? Buffer.from(body) : body])
}

/** A well-formed call. */
export function wellFormed(token: string, tool: string): Buffer {
  const body = callOf(tool)
  return written({ lines: [...headLines(token), `Content-Length: ${body.length}`], body })
}

/** Refused at the head: one response, and the call after it on the connection must not be forwarded. */
export function refused(bytes: Buffer, token: string, status = 400): Drawn {
  return { bytes: Buffer.concat([bytes, wellFormed(token, CANARY)]), statuses: [status], answers: 1 }
}

/** The head lines of a call with `lines` among them, somewhere. */
export function withLines(dice: Dice, token: string, lines: readonly string[]): string[] {
  const all = headLines(token)
  for (const line of lines) all.splice(dice.below(all.length + 1), 0, line)
  return all
}
