import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { boundaryOf, MultipartError, type MultipartEvent, MultipartParser } from './parser.ts'

const BOUNDARY = 'b-1'

/** The parts of a body that arrives in these chunks: name, file name and text. */
function parse(chunks: readonly Uint8Array[]): readonly (readonly [string, string | null, string])[] {
  const parser = new MultipartParser(BOUNDARY)
  const parts: [string, string | null, string][] = []
  const take = (event: MultipartEvent) => {
    const last = parts.at(-1)
    if (event.kind === 'head') parts.push([event.name, event.filename, ''])
    else if (event.kind === 'data' && last !== undefined) last[2] += event.bytes.toString('latin1')
  }
  for (const chunk of chunks) parser.push(chunk).forEach(take)
  assert.ok(parser.isComplete)
  return parts
}

function bodyOf(parts: readonly (readonly [string, string | null, string])[]): Buffer {
  const written = parts.map(([name, filename, text]) => {
    const file = filename === null ? '' : `; filename="${filename}"`
    return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${text}\r\n`
  })
  return Buffer.from(`${written.join('')}--${BOUNDARY}--\r\n`, 'latin1')
}

test('the parts of a body do not depend on how it is split', () => {
  const piece = fc.constantFrom('\r', '\n', '-', '--', `\r\n--${BOUNDARY.slice(0, -1)}`, 'x', '\0', 'é', '')
  const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''))
  const part = fc.tuple(fc.constantFrom('file', 'image[]'), fc.constantFrom(null, 'a.png', ''), text)
  const cuts = fc.array(fc.nat(400), { maxLength: 12 })
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), cuts, (parts, at) => {
      const body = bodyOf(parts)
      const sorted = [0, ...at.filter((one) => one < body.length).sort((one, other) => one - other), body.length]
      const chunks = sorted.slice(1).map((end, i) => body.subarray(sorted[i], end))
      assert.deepEqual(parse(chunks), parts)
      assert.deepEqual(parse([...body].map((byte) => Buffer.of(byte))), parts)
    }),
  )
})

test('text after a boundary, text before the first one, and an overlong head are refused', () => {
  const head = 'Content-Disposition: form-data; name="a"'
  const bodies = [
    `--${BOUNDARY}x\r\n${head}\r\n\r\n`,
    `x--${BOUNDARY}\r\n${head}\r\n\r\n`,
    `--${BOUNDARY}\r\n${head}\r\n${head}\r\n\r\n`,
    `--${BOUNDARY}\r\n${head}\r\nContent-Transfer-Encoding: base64\r\n\r\n`,
    `--${BOUNDARY}\r\n${head}\r\nX: ${'x'.repeat(3000)}`,
    `--${BOUNDARY}--\r\n--${BOUNDARY}\r\n`,
  ]
  for (const body of bodies) {
    assert.throws(() => new MultipartParser(BOUNDARY).push(Buffer.from(body)), MultipartError, body)
    const parser = new MultipartParser(BOUNDARY)
    const inBytes = () => {
      for (const byte of Buffer.from(body)) parser.push(Buffer.of(byte))
    }
    assert.throws(inBytes, MultipartError, body)
  }
})

test('the length of a head is limited alike in one chunk and byte by byte', () => {
  const head = `Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain;`
  for (const [length, isAccepted] of [
    [2048, true],
    [2049, false],
  ] as const) {
    const body = Buffer.from(
      `--${BOUNDARY}\r\n${head}${' '.repeat(length - head.length - 3)}a=b\r\n\r\n\r\n--${BOUNDARY}--`,
    )
    const inPieces = (size: number) => () => {
      const parser = new MultipartParser(BOUNDARY)
      for (let at = 0; at < body.length; at += size) parser.push(body.subarray(at, at + size))
      return parser.isComplete
    }
    for (const size of [1, 3, body.length]) {
      if (isAccepted) assert.equal(inPieces(size)(), true)
      else assert.throws(inPieces(size), /longer than 2048 bytes/)
    }
  }
})

test('data is handed on in the memory in which it arrived', () => {
  const parser = new MultipartParser(BOUNDARY)
  parser.push(Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\n`))
  const chunk = Buffer.allocUnsafeSlow(1000).fill('\r\n--')
  const events = parser.push(chunk)
  const [first, second] = events
  assert.ok(first?.kind === 'data' && second === undefined)
  assert.equal(first.bytes.buffer, chunk.buffer)
})

test('a content type has one boundary and nothing else', () => {
  assert.equal(boundaryOf('multipart/form-data; boundary="a b"'), null)
  assert.equal(boundaryOf('multipart/form-data; boundary="a:b"'), 'a:b')
  assert.equal(boundaryOf('multipart/form-data; boundary=a; boundary=b'), null)
  assert.equal(boundaryOf('multipart/mixed; boundary=a'), null)
  assert.equal(boundaryOf(undefined), null)
})
