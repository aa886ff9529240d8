import { createServer } from 'node:http'
import { closed, listening } from './local.ts'

/** A provider of the Responses API that stores what it is not forbidden to, as OpenAI's does, for all users of the account. */
export interface ResponsesServer {
  /** `http://127.0.0.1:<port>/v1` */
  readonly url: string
  /** Bodies of the requests. */
  readonly requests: readonly { readonly previous_response_id?: string }[]
  close(): Promise<void>
}

/** Starts a provider on a free port. */
export async function startResponsesServer(): Promise<ResponsesServer> {
  const stored = new Set<string>()
  const requests: { previous_response_id?: string }[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = JSON.parse(Buffer.concat(chunks).toString())
    requests.push(body)
    const { previous_response_id: before, store = true, stream = false } = body
    response.writeHead(before !== undefined && !stored.has(before) ? 400 : 200, {
      'content-type': stream ? 'text/event-stream' : 'application/json',
    })
    if (before !== undefined && !stored.has(before)) return void response.end('{"error":{"message":"not found"}}')
    const id = `resp_${requests.length}`
    if (store) stored.add(id)
    const content = [{ type: 'output_text', text: 'hello', annotations: [] }]
    const output = [{ type: 'message', id: `msg_${requests.length}`, role: 'assistant', status: 'completed', content }]
    const whole = { id, object: 'response', status: 'completed', model: 'm', output, usage: null }
    if (!stream) return void response.end(JSON.stringify(whole))
    const event = (type: string) => `event: ${type}\ndata: ${JSON.stringify({ type, response: whole })}\n\n`
    response.end(event('response.created') + event('response.completed'))
  })
  const url = `http://127.0.0.1:${await listening(server)}/v1`
  return { url, requests, close: () => closed(server) }
}
