import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { TestClock } from '@plat/core'
import { lineOf } from '@plat/testkit/segments'
import type { Head } from '../../format.ts'
import { MerkleTree } from '../../proof/tree.ts'
import { type Growth, growTree } from '../../sequence/grow.ts'
import type { Rec } from '../../types.ts'
import { SMALL_FILE_BYTES } from './grow-file.ts'
import { OpenIntents } from './open-intents.ts'
import { Sealer } from './sealer.ts'

const EMPTY = { size: 0, subtrees: [] }
const LIMIT = SMALL_FILE_BYTES + 1

/** A sealer whose file is in memory, and what it reads of it. */
function createFixture() {
  const clock = new TestClock()
  const read: Pick<Growth, 'from' | 'to'>[] = []
  const faults: string[] = []
  let file = Buffer.alloc(0)
  let head: Head = { seq: -1, hash: '0'.repeat(64) }
  let ready = 0
  const fixture = { isFailing: false }
  const sealer = new Sealer({
    ...{ path: 'audit.jsonl', ledgerId: 'id', clock, intents: new OpenIntents(new Map()) },
    limits: { bytes: LIMIT, seconds: 0 },
    grow: async (growth) => {
      read.push(growth)
      if (fixture.isFailing) throw new Error('EIO')
      const source = { read: (target: Uint8Array, at: number) => file.copy(target, 0, at, at + target.length) }
      return await growTree(source, growth)
    },
    onReady: () => ready++,
    onFault: (reason) => faults.push(reason),
    onClose: () => {},
  })
  sealer.begin({ first: 0, tree: EMPTY }, 0, null)
  /** Places records of about this size; all of them are durable then. */
  const append = async (count: number, bytes = 300): Promise<Head> => {
    const lines: Buffer[] = []
    for (let n = 0; n < count; n++) {
      const seq = head.seq + 1
      const { text, hash } = lineOf(head.hash, { kind: 'admin', reason: 'x'.repeat(bytes) }, seq)
      const line = Buffer.from(`${text}\n`)
      lines.push(line)
      head = { seq, hash }
      sealer.placed(head, line, { start: 0, end: line.length - 1 })
    }
    file = Buffer.concat([file, ...lines])
    sealer.durable(head)
    for (let turn = 0; turn < 20; turn++) await setImmediate()
    return head
  }
  const rootOfFile = () => {
    const tree = new MerkleTree()
    for (const line of file.toString().split('\n').slice(0, -1)) tree.addLine(Buffer.from(line))
    return tree.root()
  }
  return { clock, read, faults, ready: () => ready, fixture, sealer, append, rootOfFile, size: () => file.length }
}

function ended(sealer: Sealer): Rec | undefined {
  const records: Rec[] = []
  sealer.end((rec) => records.push(rec))
  return records.at(-1)
}

test('a large file is hashed in steps while it is active, each record once, and only the last step when it is due', async () => {
  const { sealer, append, read, ready, rootOfFile, size } = createFixture()
  for (let batch = 0; batch < 8; batch++) await append(1000, 100)
  assert.equal(ready(), 0)
  assert.deepEqual(
    read.map(({ from, to }) => [from.tree.size, to.seq + 1]),
    [[0, 5000]],
  )
  while (ready() === 0) await append(500)
  for (const [index, { from, to }] of read.entries()) {
    const before = read[index - 1]
    if (before !== undefined) assert.equal(from.tree.size, before.to.seq + 1, 'a record is hashed twice or never')
    assert.ok(index < 1 || from.offset > 0)
    assert.ok(to.seq >= from.tree.size)
  }
  const last = read.at(-1)
  assert.ok((last?.from.offset ?? 0) > size() / 2, 'the last step reads most of the file')
  assert.equal(ended(sealer)?.root, rootOfFile())
})

test('a step that fails is repeated from where the last one ended, also after the file is opened again', async () => {
  const { sealer, append, read, ready, rootOfFile, fixture, clock, faults, size } = createFixture()
  await append(4500)
  fixture.isFailing = true
  const head = await append(4500)
  assert.deepEqual(faults, ['EIO'])
  sealer.begin({ first: 0, tree: EMPTY }, size(), head)
  fixture.isFailing = false
  await clock.advance(60_000)
  while (ready() === 0) await append(500)
  const [, failed, ...later] = read
  assert.equal(failed?.from.tree.size, 4500)
  assert.equal(later[0]?.from.tree.size, 4500)
  assert.equal(ended(sealer)?.root, rootOfFile())
})

test('a file that changed under the tree is not sealed', async () => {
  const { sealer, append, read, ready, faults } = createFixture()
  await append(4500)
  sealer.durable({ seq: 9000, hash: 'f'.repeat(64) })
  for (let turn = 0; turn < 20; turn++) await setImmediate()
  assert.match(faults.join(), /no longer holds record 9000/)
  assert.deepEqual([read.length, ready()], [2, 0])
})
