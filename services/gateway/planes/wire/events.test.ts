import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HttpClient, Receiver } from '@plat/http'
import fc from 'fast-check'
import { type Frame, FrameRun } from '../../call/index.ts'
import { EventFrames } from './events.ts'
import { UpstreamExchange } from './exchange.ts'
import { SseSplitter } from './sse.ts'

const REQUEST = { method: 'GET', path: '/', headers: {}, body: null, headersTimeoutMs: 0, pauseTimeoutMs: 0 }
const LONGER_THAN_A_SLICE_MS = 6
const EVENTS = ['data: a\n\n', 'data: bc\n\n', 'id: 1\ndata: d\n\n', ': beat\n\n', 'data: look\n\n', 'data: e\r\n\r\n']

/** Returns the frames of a stream with these reads. From the first event with `look`, CR or a comment on, events are split into frames. */
async function framesOf(reads: readonly Buffer[]): Promise<readonly Frame[]> {
  const receivers: Receiver[] = []
  const client: HttpClient = {
    send(_, receiver) {
      receivers.push(receiver)
      return { pause() {}, resume() {}, abort() {} }
    },
  }
  const exchange = new UpstreamExchange(client, REQUEST)
  const frames = new EventFrames(exchange, { pass: single, together, ended() {}, stop() {} })
  const seen: Frame[] = []
  const reading = (async () => {
    for await (const batch of frames) seen.push(...batch)
  })()
  for (const read of reads) {
    receivers[0]?.onData(read)
    await new Promise(setImmediate)
  }
  receivers[0]?.onEnd()
  await reading
  return seen
}

function single(raw: Uint8Array): Frame {
  return { role: 'partial', value: undefined, raw }
}

function together(events: Uint8Array): readonly FrameRun[] {
  const text = Buffer.from(events).toString('latin1')
  const whole = text.split(/(?<=\n\n)/)
  const looked = whole.findIndex((event) => /^:|look|\r/.test(event))
  const expected = looked === -1 ? whole : whole.slice(0, looked)
  const shortest = Math.min(...expected.map((event) => event.length))
  const raw = events.subarray(0, expected.join('').length)
  return expected.length === 0 ? [] : [new FrameRun({ raw, count: expected.length, shortest, split: () => [] })]
}

test('a stream keeps its bytes and events, however its reads are split', async () => {
  const stream = fc.array(fc.constantFrom(...EVENTS), { minLength: 1, maxLength: 8 }).map((events) => events.join(''))
  const cuts = fc.array(fc.nat(80), { maxLength: 4 })
  let mixed = 0
  await fc.assert(
    fc.asyncProperty(stream, cuts, async (text, at) => {
      const places = [0, ...at.filter((cut) => cut < text.length).sort((one, other) => one - other), text.length]
      const reads = places.slice(1).map((end, place) => Buffer.from(text.slice(places[place], end)))
      const frames = await framesOf(reads.filter((read) => read.length > 0))
      const runs = frames.filter((frame) => frame instanceof FrameRun)
      if (runs.length > 0 && runs.length < frames.length) mixed++
      assert.equal(Buffer.concat(frames.map(({ raw }) => raw ?? Buffer.alloc(0))).toString(), text)
      const count = frames.reduce((sum, frame) => sum + (frame instanceof FrameRun ? frame.count : 1), 0)
      assert.equal(count, new SseSplitter().push(Buffer.from(text)).length)
    }),
    { numRuns: 300 },
  )
  assert.ok(mixed > 50, `only ${mixed} were mixed`)
})

test('events of one read whose work is long come in several batches, all and in order, and an invalid one ends them', async () => {
  const names = [...'abcdef']
  const bytes = Buffer.from(names.map((name) => `data: ${name}\n\n`).join(''))
  const reads = [bytes]
  const source = { news: () => null, take: () => (reads.length === 0 ? null : reads.splice(0, 1)) }
  for (const invalid of [null, 'e']) {
    let turns = 0
    const turn = setInterval(() => turns++)
    const batches: string[] = []
    const pass = (raw: Uint8Array) => {
      const until = performance.now() + LONGER_THAN_A_SLICE_MS
      while (performance.now() < until);
      const text = Buffer.from(raw).toString()
      if (text.includes(`data: ${invalid}`)) throw new Error(text)
      return single(raw)
    }
    const frames = new EventFrames(source, { pass, ended() {}, stop() {} })
    const reading = (async () => {
      for await (const batch of frames)
        batches.push(
          batch
            .map(({ raw }) =>
              Buffer.from(raw ?? '')
                .toString()
                .at(6),
            )
            .join(''),
        )
    })()
    await (invalid === null ? reading : assert.rejects(reading))
    clearInterval(turn)
    assert.equal(batches.join(''), invalid === null ? 'abcdef' : 'abcd')
    assert.ok(batches.length > 2 && turns > 2, `${batches.length} batches, ${turns} turns`)
    reads.push(bytes)
  }
})
