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
