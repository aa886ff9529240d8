import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { closed, listening } from '@plat/testkit/local'

/**
 * The part of llama.cpp's server that the adapter uses, as tools/server/README.md documents it: `GET /props`, `GET /v1/models`,
 * `POST /slots/{id_slot}?action=save|restore|erase` with `filename`, and completions with `id_slot` and `cache_prompt`, whose `timings.cache_n` is the number of
 * tokens that were in the slot before. Its model has a token for each word and repeats the last message.
 */
export interface TestLlama {
  readonly url: string
  /** Tokens of each slot. */
  readonly slots: readonly string[][]
  /** Completions wait for this promise, after their headers were sent. */
  hold: Promise<void> | null
  close(): Promise<void>
}

export async function startTestLlama(dir: string, count: number): Promise<TestLlama> {
  const slots = Array.from({ length: count }, (): string[] => [])
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Object(JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}'))
    const url = new URL(request.url ?? '/', 'http://localhost')
    const json = (value: object, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    if (url.pathname === '/props') return json({ total_slots: count })
    if (url.pathname === '/v1/models') return json({ object: 'list', data: [{ id: 'words', object: 'model' }] })
    const [, id] = /^\/slots\/(\d+)$/.exec(url.pathname) ?? []
    if (id !== undefined)
      return json(...acted(slots, { id: Number(id), dir, action: url.searchParams.get('action'), body }))
    const { reused, text } = completed(slots[body.id_slot] ?? [], body)
    const timings = { cache_n: reused }
    const choice = { index: 0, finish_reason: 'stop' }
    const common = { id: 'c', created: 1, model: 'words', timings }
    if (body.stream !== true) {
      await llama.hold
      const message = { role: 'assistant', content: text }
      return json({ ...common, object: 'chat.completion', choices: [{ ...choice, message }] })
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const chunk = { ...common, object: 'chat.completion.chunk', choices: [{ ...choice, delta: { content: text } }] }
    response.write(`data: ${JSON.stringify(chunk)}\n\n`)
    await llama.hold
    return response.end('data: [DONE]\n\n')
  })
  const url = `http://127.0.0.1:${await listening(server)}`
  const llama: TestLlama = { url, slots, hold: null, close: () => closed(server) }
  return llama
}

interface Action {
  readonly id: number
  readonly dir: string
  readonly action: string | null
  readonly body: Readonly<Record<string, unknown>>
}

function acted(slots: string[][], { id, dir, action, body }: Action): [object, number?] {
  const filename = String(body.filename)
  const path = join(dir, filename)
  const tokens = slots[id] ?? []
  if (action === 'erase') {
    slots[id] = []
    return [{ id_slot: id, n_erased: tokens.length }]
  }
  if (!/^[\w.-]+$/.test(filename)) return [{ error: { code: 400, message: 'Invalid filename' } }, 400]
  if (action === 'save') {
    const text = JSON.stringify(tokens)
    writeFileSync(path, text)
    return [{ id_slot: id, filename, n_saved: tokens.length, n_written: text.length, timings: { save_ms: 1 } }]
  }
  try {
    const text = readFileSync(path, 'utf8')
    const restored: string[] = JSON.parse(text)
    slots[id] = restored
    return [{ id_slot: id, filename, n_restored: restored.length, n_read: text.length, timings: { restore_ms: 1 } }]
  } catch {
    return [{ error: { code: 400, message: 'Unable to restore slot' } }, 400]
  }
}

/** Fills a slot with the tokens of a prompt and of its completion. */
function completed(slot: string[], body: Readonly<Record<string, unknown>>) {
  const messages = Array.isArray(body.messages) ? body.messages : []
  const tokens = messages.flatMap(({ role, content }: { role: string; content: string }) => [
    role,
    ...content.split(' '),
  ])
  const differs = tokens.findIndex((token, index) => token !== slot[index])
  const reused = body.cache_prompt === true ? Math.min(differs < 0 ? tokens.length : differs, slot.length) : 0
  const text = String(messages.at(-1)?.content ?? '')
  slot.splice(0, slot.length, ...tokens, 'assistant', ...text.split(' '))
  return { reused, text }
}
