import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMessages } from './messages.ts'

test('a message may have more parts than a call has room for arguments', () => {
  const content = Array.from({ length: 300_000 }, () => ({ type: 'text', text: 'a' }))
  const { turns } = readMessages([
    { role: 'user', content: 'a' },
    { role: 'user', content },
  ])
  assert.equal(turns[0]?.parts.length, 300_001)
})

test('the arguments of all tool calls together have limits, and the refusal says so', () => {
  const call = (text: string) => ({ id: 'c', function: { name: 'a', arguments: text } })
  const read = (...texts: readonly string[]) => readMessages([{ role: 'assistant', tool_calls: texts.map(call) }])
  const list = (values: number) => `{"a":[${Array.from({ length: values }, () => '1').join()}]}`
  assert.equal(read(list(20_000), list(9000), '').turns[0]?.parts.length, 3)
  assert.throws(
    () => read(list(20_000), list(10_000)),
    /tool_calls\[1\].function.arguments.*exceeds 2 MiB or 30,000 values/,
  )
  assert.throws(() => read('{'), /must be JSON$/)
})
