import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { replaceDocument, splitDocuments } from './documents.ts'

const texts = (text: string) => splitDocuments(text).map(({ start, end }) => text.slice(start, end))

test('documents are split at lines with ---, and each has its line', () => {
  const text = '# one\na: 1\n---\nb: |\n  ---\n  x\n--- # three\nc: 3\n--- {d: 4}\n'
  assert.deepEqual(texts(text), ['# one\na: 1\n', '---\nb: |\n  ---\n  x\n', '--- # three\nc: 3\n', '--- {d: 4}\n'])
  assert.deepEqual(
    splitDocuments(text).map(({ line }) => line),
    [1, 3, 7, 9],
  )
})

test('comments and directives before a document belong to it, and parts without content are none', () => {
  assert.deepEqual(texts('# head\n%YAML 1.1\n---\na: 1\n---\n'), ['# head\n%YAML 1.1\n---\na: 1\n'])
  assert.deepEqual(texts('---\n# nothing\n---\r\na: 1\r\n---\n# end\n'), ['---\r\na: 1\r\n'])
  assert.deepEqual(texts('---a: 1\n----\n'), ['---a: 1\n----\n'])
  for (const empty of ['', '\n', '# only\n---\n---\n']) assert.deepEqual(texts(empty), [])
})

test('a replaced or removed document leaves every byte of the others', () => {
  const text = '# head\na: 1\n---\n# of b\nb: 2\n--- {c: 3}\n---\nd: 4'
  const [a, b, c, d] = splitDocuments(text)
  assert.ok(a && b && c && d)
  assert.equal(replaceDocument(text, a, 'A\n'), '# head\nA\n---\n# of b\nb: 2\n--- {c: 3}\n---\nd: 4')
  assert.equal(replaceDocument(text, b, 'B\n'), '# head\na: 1\n---\n# of b\nB\n--- {c: 3}\n---\nd: 4')
  assert.equal(replaceDocument(text, c, 'C\n'), '# head\na: 1\n---\n# of b\nb: 2\n---\nC\n---\nd: 4')
  assert.equal(replaceDocument(text, d, null), '# head\na: 1\n---\n# of b\nb: 2\n--- {c: 3}\n')
  const [only] = splitDocuments('# x\na: 1\n')
  assert.ok(only)
  assert.equal(replaceDocument('# x\na: 1\n', only, null), null)
})

test('for any text, documents follow one another and end the text or at comments', () => {
  const line = fc.constantFrom('---', '--- # c', '--- a', '# c', '', 'a: 1', '  ---', '%TAG x')
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      const text = lines.join('\n')
      let before = 0
      for (const { start, end, line: number } of splitDocuments(text)) {
        assert.ok(start >= before && end > start && end <= text.length)
        assert.equal(text.slice(0, start).split('\n').length, number)
        before = end
      }
    }),
  )
})
