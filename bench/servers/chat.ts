import type { ServerResponse } from 'node:http'
import { bodyOf, sendJson, serve } from './body.ts'

/**
 * A chat completion of 1 KB: whole, or as 64 chunks, each in a write of its own. With an argument, a stream begins on a tick of so
 * many milliseconds of the machine's clock, whenever the request came: a reader knows when its first byte was sent.
 */
const tickMs = Number(process.argv[2] ?? 0)
/** A tick that is nearer than this is left to the requests that came before, in milliseconds. */
const AHEAD_MS = 4
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
  const begin = () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    next()
  }
  if (tickMs === 0) begin()
  else atTick(begin)
}

/** Timers are too coarse for the last millisecond: it is waited out. */
function atTick(job: () => void): void {
  const now = performance.timeOrigin + performance.now()
  const due = Math.ceil((now + AHEAD_MS) / tickMs) * tickMs
  setTimeout(
    () => {
      while (performance.timeOrigin + performance.now() < due);
      job()
    },
    due - now - 2,
  )
}
