import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  eventData,
  eventId,
  eventName,
  MAX_EVENT_LINES,
  messageEvent,
  SseSplitter,
  withEventData,
  withEventId,
} from './sse.ts'

/** Returns the events of a stream that is split into chunks of the given sizes, repeatedly. */
function split(stream: Uint8Array, sizes: readonly number[]): Buffer[] {
  const splitter = new SseSplitter()
  const events: Uint8Array[] = []
  let at = 0
  for (let turn = 0; at < stream.length; turn++) {
    const end = at + (sizes[turn % sizes.length] ?? 1)
    events.push(...splitter.push(stream.subarray(at, end)))
    at = end
  }
  return [...events, ...splitter.end()].map((event) => Buffer.from(event))
}

const piece = fc.constantFrom(
  'data: x',
  'data',
  ':c',
  'id: 1',
  'd',
  ' ',
  '\n',
  '\r',
  '\r\n',
  '\n\n',
  '\r\n\r\n',
  '\r\r',
  'é',
)
const stream = fc.array(piece, { maxLength: 30 }).map((parts) => Buffer.from(parts.join('')))

test('events do not depend on the chunks of the stream', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }), (bytes, sizes) => {
      assert.deepEqual(split(bytes, sizes), split(bytes, [bytes.length + 1]))
    }),
  )
})

test('the concatenated events are the stream up to its last blank line', () => {
  fc.assert(
    fc.property(stream, (bytes) => {
      const together = Buffer.concat(split(bytes, [3]))
      assert.ok(bytes.subarray(0, together.length).equals(together))
      const rest = bytes.subarray(together.length).toString()
      assert.doesNotMatch(rest, /(\n\n|\r\r|\r\n\r\n|\n\r|^\r|^\n)/)
    }),
  )
})

const data = (event: string) => {
  const found = eventData(Buffer.from(event))
  return found === null ? null : Buffer.from(found).toString()
}

test('data is parsed as in browsers', () => {
  assert.equal(data('data: a\n\n'), 'a')
  assert.equal(data('data:a\r\ndata:  b\r\n\r\n'), 'a\n b')
  assert.equal(data('data\ndata\n\n'), '\n')
  assert.equal(data('id: 1\nretry: 5\ndata: \n\n'), '')
  assert.equal(data(': comment\nid: 1\ndatabase: x\n\n'), null)
})

test('replacing the data of an event keeps its other fields, and line breaks in the data', () => {
  const event = Buffer.from('id: 1\r\n: c\r\ndata: old\r\ndata: older\r\nevent: message\r\n\r\n')
  const changed = Buffer.from(withEventData(event, Buffer.from('a\nb'))).toString()
  assert.equal(changed, 'id: 1\r\n: c\r\ndata: a\ndata: b\nevent: message\r\n\r\n')
  assert.equal(data(changed), 'a\nb')
  assert.equal(data(Buffer.from(messageEvent(Buffer.from('{\r"a":1}'))).toString()), '{ "a":1}')
})

test('the id of an event is parsed as in browsers, and replacing it keeps the other fields', () => {
  const id = (event: string) => eventId(Buffer.from(event))
  assert.deepEqual(
    [id('id: 1\ndata: x\n\n'), id('id:a\r\nid: b\r\n\r\n'), id('id\n\n'), id('ideal: 1\n\n'), id('data: id: 1\n\n')],
    ['1', 'b', null, null, null],
  )
  const event = Buffer.from(': c\r\nid: 1\r\ndata: x\r\nid: 2\r\n\r\n')
  assert.equal(Buffer.from(withEventId(event, 'new')).toString(), 'id: new\n: c\r\ndata: x\r\n\r\n')
  assert.equal(Buffer.from(withEventId(event, null)).toString(), ': c\r\ndata: x\r\n\r\n')
})

test('a byte order mark at the start hides neither data nor id', () => {
  assert.equal(data('\ufeffdata: a\n\n'), 'a')
  assert.equal(eventId(Buffer.from('\ufeffid: 1\n\n')), '1')
  assert.equal(Buffer.from(withEventData(Buffer.from('\ufeffdata: a\n\n'), Buffer.from('b'))).toString(), 'data: b\n\n')
})

test('an event of more lines than are read is refused by whatever reads its lines', () => {
  const event = (count: number) => Buffer.from(`${'id: a\r\n'.repeat(count - 1)}\r\n`)
  const reads = [
    eventData,
    eventId,
    eventName,
    (raw: Uint8Array) => withEventData(raw, raw),
    (raw: Uint8Array) => withEventId(raw, null),
  ]
  for (const read of reads) {
    read(event(MAX_EVENT_LINES))
    assert.throws(() => read(event(MAX_EVENT_LINES + 1)), /an event is larger than 20000 lines/)
  }
})

test('a JSON message of more lines than an event may have becomes an event that can be read and changed', () => {
  const json = Buffer.from(`{"a":[${'1,\r\n'.repeat(MAX_EVENT_LINES)}1]}`)
  const event = withEventId(messageEvent(json), 'e1')
  assert.equal(eventId(event), 'e1')
  const changed = withEventData(event, Buffer.from('{}'))
  assert.deepEqual([eventId(changed), String(eventData(changed))], ['e1', '{}'])
  assert.deepEqual(JSON.parse(String(eventData(event))), JSON.parse(String(json)))
})
