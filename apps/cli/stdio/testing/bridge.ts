import { request } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { isObject, systemClock, systemIds } from '@plat/core'
import { type Log, silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { startBridge } from '../bridge.ts'
import { REASON_HEADER } from '../http/reply.ts'
import type { BridgeEvent, ServerSpec } from '../protocol.ts'

export const CHILD = join(import.meta.dirname, '../fixtures/child.mjs')

/** A specification of the fixture. */
export function childSpec(changed: Partial<ServerSpec> = {}): ServerSpec {
  return {
    key: 'default/child',
    argv: [process.execPath, CHILD],
    env: {},
    secrets: [],
    cwd: tempFolder(),
    perSession: true,
    idleMs: 60_000,
    problem: null,
    ...changed,
  }
}

export interface Answer {
  readonly status: number
  readonly type: string
  readonly session: string
  readonly reason: string
  /** Messages of the body or the stream. */
  readonly messages: readonly Record<string, unknown>[]
}

/** A client of the bridge: one session of plat, as the gateway names it. */
export interface BridgeClient {
  /** Sends a message; without one, a GET (`stream`) or DELETE. Rejects if the connection is cut. */
  send(message: object | null, how?: SendOptions): Promise<Answer>
  /** Initializes, and returns the session. */
  open(): Promise<string>
  /** Calls a tool; returns its text, else what the answer says. */
  call(tool: string, session?: string, args?: object): Promise<string>
}

export interface SendOptions {
  readonly session?: string | undefined
  readonly method?: 'GET' | 'DELETE'
  readonly modern?: boolean
  /** Called with each message as it arrives. */
  readonly seen?: (message: Record<string, unknown>) => void
  readonly signal?: AbortSignal
  /** Reads nothing of the body before this resolves. */
  readonly hold?: Promise<void>
}

/** Starts a bridge with these servers. */
export async function testBridge(t: TestContext, specs: readonly ServerSpec[], log: Log = silentLog) {
  const socket = join(tempFolder(), 's')
  const events: BridgeEvent[] = []
  const report = (event: BridgeEvent) => void events.push(event)
  const bridge = await startBridge({
    listener: { socket },
    clock: systemClock,
    ids: systemIds(systemClock),
    log,
    report,
  })
  t.after(() => bridge.stop())
  bridge.serve(specs)
  return { bridge, events, socket, client: (session = 's', agent = 'a') => clientOf(socket, { session, agent }) }
}

let lastId = 0

export function clientOf(
  socketPath: string,
  { session: caller, agent, path = '/default/child' }: { session: string; agent: string; path?: string },
): BridgeClient {
  const send: BridgeClient['send'] = (message, { session, method, modern = false, seen, signal, hold } = {}) =>
    new Promise((resolve, reject) => {
      const headers = {
        accept: 'application/json, text/event-stream',
        'plat-stdio-session': caller,
        'plat-stdio-agent': agent,
        ...(session !== undefined && { 'mcp-session-id': session }),
        ...(modern && { 'mcp-protocol-version': '2026-07-28' }),
      }
      const outgoing = request({ socketPath, path, method: method ?? 'POST', headers, ...(signal && { signal }) })
      outgoing.on('error', reject)
      outgoing.on('response', (response) => {
        let text = ''
        let isSeen = 0
        response.setEncoding('utf8').on('error', reject)
        response.on('data', (part: string) => {
          text += part
          if (seen === undefined) return
          const messages = messagesIn(text.slice(0, text.lastIndexOf('\n\n') + 1))
          for (const one of messages.slice(isSeen)) seen(one)
          isSeen = messages.length
        })
        if (hold !== undefined) {
          response.pause()
          void hold.then(() => response.resume())
        }
        response.on('end', () => {
          const head = (name: string) => String(response.headers[name] ?? '')
          resolve({
            status: response.statusCode ?? 0,
            type: head('content-type'),
            session: head('mcp-session-id'),
            reason: decodeURIComponent(head(REASON_HEADER)),
            messages: messagesIn(text),
          })
        })
      })
      outgoing.end(message === null ? undefined : JSON.stringify(message, null, 2))
    })
  return {
    send,
    async open() {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } }
      const answer = await send({ jsonrpc: '2.0', id: ++lastId, method: 'initialize', params })
      const session = answer.session
      await send({ jsonrpc: '2.0', method: 'notifications/initialized' }, { session })
      return session
    },
    async call(tool, session, args = {}) {
      const modern = session === undefined
      const message = { jsonrpc: '2.0', id: ++lastId, method: 'tools/call', params: { name: tool, arguments: args } }
      const answer = await send(message, { session, modern })
      return textIn(answer)
    },
  }
}

/** Text of the result of a call, or status and reason. */
export function textIn({ status, reason, messages }: Answer): string {
  const result = messages.at(-1)?.result
  const content: unknown = isObject(result) ? result.content : null
  const [first]: readonly unknown[] = Array.isArray(content) ? content : []
  return isObject(first) ? String(first.text) : `${status} ${reason}`
}

function messagesIn(text: string): Record<string, unknown>[] {
  if (text === '') return []
  const parts = text.startsWith('{') ? [text] : text.split('\n').filter((line) => line.startsWith('data: '))
  return parts.map((part) => JSON.parse(part.replace(/^data: /, '')))
}
