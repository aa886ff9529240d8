import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { text } from 'node:stream/consumers'

export interface RestFaceOptions {
  /** `https://127.0.0.1:6443`. */
  readonly url: string
  /** Of the authority that the server's certificate is from, in PEM. */
  readonly ca?: string | Buffer
  readonly token: string
}

/** Response of a server. */
interface RestReply {
  readonly status: number
  readonly body: unknown
  /** `Warning` headers. */
  readonly warnings: readonly string[]
}

interface AskOptions {
  readonly body?: unknown
  readonly type?: string
  readonly accept?: string
}

/** A server of the Kubernetes API over its socket. */
export interface RestFace {
  ask(method: string, path: string, options?: AskOptions): Promise<RestReply>
  /** Objects of a watch, one for each line, until the loop over them ends. */
  watch(path: string): AsyncIterable<unknown>
  close(): Promise<void>
}

/** A server called as Kubernetes clients do. Objects of the used kinds are deleted at the end. */
export function restFace({ url, ca, token }: RestFaceOptions): RestFace {
  const isTls = url.startsWith('https:')
  const agent = isTls ? new TlsAgent({ ca, keepAlive: true }) : new Agent({ keepAlive: true })
  const send = async (method: string, path: string, headers: Readonly<Record<string, string>>, body: string) => {
    // Without a length Node sends the body of a DELETE as if it were the next request.
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    const all = { ...headers, ...(body !== '' && length), authorization: `Bearer ${token}` }
    const sent = (isTls ? tlsRequest : request)(new URL(path, url), { method, agent, headers: all })
    sent.end(body)
    const [response]: IncomingMessage[] = await once(sent, 'response')
    if (response === undefined) throw new Error(`${path}: no answer`)
    return response
  }
  const ask: RestFace['ask'] = async (method, path, { body, type = 'application/json', accept = '*/*' } = {}) => {
    const content = body === undefined ? '' : JSON.stringify(body)
    const response = await send(method, path, { accept, ...(body !== undefined && { 'content-type': type }) }, content)
    const replyText = await text(response)
    const warnings = response.headersDistinct.warning ?? []
    return {
      status: response.statusCode ?? 0,
      body: replyText.startsWith('{') ? JSON.parse(replyText) : replyText,
      warnings,
    }
  }
  return {
    ask,
    async *watch(path) {
      const response = await send('GET', path, { accept: 'application/json' }, '')
      let rest = ''
      try {
        for await (const chunk of response.setEncoding('utf8')) {
          const lines = `${rest}${chunk}`.split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) yield JSON.parse(line)
        }
      } finally {
        response.destroy()
      }
    },
    async close() {
      const group = '/apis/plat.dev/v1alpha1'
      await ask('DELETE', `${group}/namespaces/default/mcpservers`)
      await ask('DELETE', `${group}/sovereigntypolicies`)
      agent.destroy()
    },
  }
}
