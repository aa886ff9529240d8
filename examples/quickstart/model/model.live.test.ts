import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Model, startModel } from './server.ts'

let model: Model

before(async () => {
  model = await startModel({ port: 0 })
})

after(() => model.close())

async function ask(body: unknown): Promise<{ readonly status: number; readonly text: string }> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(`${model.url}/chat/completions`, { method: 'POST', body: text })
  return { status: response.status, text: await response.text() }
}

const messages = [{ role: 'user', content: 'hello' }]

test('it answers from its script, and counts words as tokens', async () => {
  const { text } = await ask({ model: 'scripted-1', messages })
  const answer = JSON.parse(text)
  assert.match(answer.choices[0].message.content, /^Hello! I am a scripted model/)
  assert.equal(answer.usage.completion_tokens, answer.choices[0].message.content.split(' ').length)
})

test('a limit of tokens is kept', async () => {
  const { text } = await ask({ model: 'scripted-1', messages, max_tokens: 2 })
  assert.equal(JSON.parse(text).choices[0].message.content, 'Hello! I')
})

test('a stream ends with its usage if requested, and always with [DONE]', async () => {
  const plain = await ask({ model: 'scripted-1', messages, stream: true })
  assert.ok(plain.text.endsWith('data: [DONE]\n\n') && !plain.text.includes('usage'))
  const counted = await ask({ model: 'scripted-1', messages, stream: true, stream_options: { include_usage: true } })
  assert.match(counted.text, /"choices":\[\],"usage":\{"prompt_tokens":1,/)
})

test('an unsupported request is refused with the error of the real service', async () => {
  for (const body of ['{', {}, { model: 'scripted-1' }, { model: 'scripted-1', messages: [] }]) {
    const { status, text } = await ask(body)
    assert.deepEqual([status, JSON.parse(text).error.type], [400, 'invalid_request_error'])
  }
  assert.equal((await fetch(`${model.url}/other`)).status, 404)
})
