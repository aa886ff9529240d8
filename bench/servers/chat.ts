import type { ServerResponse } from 'node:http'
import { clockMs } from '../harness/clock.ts'
import { bodyOf, sendJson, serve } from './body.ts'

/**
 * A chat completion of 1 KB: whole, or as 64 chunks, each in a separate write. With an argument, the first chunk of a stream contains
 * the time it was sent (`clockMs`), and the others follow that many milliseconds later, when the client has received it.
 */
const pauseMs = Number(process.argv[2] ?? 0)
const TEXT = 'x'.repeat(1024)
const CHUNKS = 64
const HEAD = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'bench-1' }
const USAGE = { prompt_tokens: 250, completion_tokens: 64, total_tokens: 314 }

const whole = JSON.stringify({
  ...HEAD,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
  usage: USAGE,
})

const event = (value: object) => `data: ${JSON.stringify({ ...HEAD, object: 'chat.completion.chunk', ...value })}\n\n`
const piece = event({ choices: [{ index: 0, delta: { content: TEXT.slice(0, 1024 / CHUNKS) }, finish_reason: null }] })
const last = event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const usage = event({ choices: [], usage: USAGE })

serve(async (request, response) => {
  const { stream, stream_options: options } = JSON.parse((await bodyOf(request)).toString())
  if (stream === true) streamed(response, options?.include_usage === true)
  else sendJson(response, whole)
})

function streamed(response: ServerResponse, withUsage: boolean): void {
  let sent = 0
  const next = () => {
    if (sent++ < CHUNKS) {
      response.write(piece)
      setImmediate(next)
    } else response.end(`${last}${withUsage ? usage : ''}data: [DONE]\n\n`)
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (pauseMs === 0) {
    next()
    return
  }
  sent++
  response.write(event({ choices: [{ index: 0, delta: { content: `sent at ${clockMs()}` }, finish_reason: null }] }))
  setTimeout(next, pauseMs)
}
