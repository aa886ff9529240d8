import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventParser, type StreamEvent } from './events.ts'

function parse(chunks: readonly string[]): readonly StreamEvent[] {
  const events: StreamEvent[] = []
  const parser = new EventParser((event) => events.push(event))
  for (const chunk of chunks) parser.push(Buffer.from(chunk))
  return events
}

const STREAM =
  ': heartbeat\n\nid: 7\nevent: approval.created\ndata: {"a":1}\n\nevent:session.ended\r\ndata:x\r\n\r\ndata: y\n\n'
const EVENTS = [
  { name: 'approval.created', id: '7' },
  { name: 'session.ended', id: '7' },
  { name: 'message', id: '7' },
]

test('events are read whatever the chunks are, and comments are none', () => {
  assert.deepEqual(parse([STREAM]), EVENTS)
  assert.deepEqual(parse([...STREAM]), EVENTS)
})

test('an event that is not complete is not delivered, and an endless line ends the stream', () => {
  assert.deepEqual(parse(['event: a\ndata: b\n']), [])
  assert.throws(() => parse(['x'.repeat((1 << 20) + 1)]), RangeError)
})
