import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../test/fuzz/target.ts'
import { LineReader } from './child/lines.ts'
import { ID_PATH, inOneLine, readMessage, replaced, valueAt } from './message.ts'

const text = near([
  '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}\n',
  'Server running\n\n{"jsonrpc":"2.0","id":"a","method":"sampling/createMessage","params":{}}\n',
  '{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"\\u0000"}}',
])

function linesOf(chunks: readonly Uint8Array[]): string[] {
  const lines: string[] = []
  const keep = (bytes: Uint8Array) => void lines.push(Buffer.from(bytes).toString('hex'))
  const reader = new LineReader(4096, { line: keep, tooLong: keep })
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  return lines
}

export const target = fuzzTarget('stdio', {
  'output of a server has the same lines however it is cut': fc.property(
    text,
    fc.integer({ min: 1, max: 9 }),
    (whole, size) => {
      const bytes = Buffer.from(whole)
      const parts: Buffer[] = []
      for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size))
      assert.deepEqual(linesOf(parts), linesOf([bytes]))
    },
  ),
  'a line is a message or refused, and another id changes nothing else': fc.property(text, (whole) => {
    for (const line of whole.split('\n')) {
      const message = readMessage(Buffer.from(line))
      if (message === null || message.value.id === undefined) continue
      const other = readMessage(inOneLine(replaced(message.bytes, ID_PATH, '"other"')))
      assert.ok(other !== null && valueAt(other.value, ID_PATH) === 'other')
      assert.deepEqual({ ...other.value, id: 0 }, { ...message.value, id: 0 })
    }
  }),
})
