import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import type { StoredChunk } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import {
  CopyDamagedError,
  type CopySource,
  compressChunk,
  copyFiles,
  copyPath,
  LedgerSequence,
  openChunk,
  openLedger,
} from '../index.ts'

const RECORDS = 6
let lines: readonly string[] = []
/** Another history with as many records. */
let forked: readonly string[] = []

before(async () => {
  lines = await newLedger()
  forked = await newLedger()
})

async function newLedger(): Promise<readonly string[]> {
  const clock = new TestClock()
  const path = join(tempFolder(), 'audit.jsonl')
  const ledger = await openLedger({ path, tenant: '', replica: 'r', clock, ids: systemIds(clock) })
  for (let n = 1; n < RECORDS; n++) await ledger.append({ kind: 'admin', n })
  await ledger.close()
  return readFileSync(path, 'utf8').trimEnd().split('\n')
}

const hashOf = (seq: number) => (seq < 0 ? '0'.repeat(64) : String(JSON.parse(lines[seq] ?? '').hash))

/** The chunk of records `first` to `last`, with other lines or statements. */
async function chunkOf(first: number, last: number, text?: Buffer, more: Partial<StoredChunk> = {}) {
  const own = Buffer.from(
    lines
      .slice(first, last + 1)
      .map((line) => `${line}\n`)
      .join(''),
  )
  const content = text ?? own
  const position = Buffer.byteLength(
    lines
      .slice(0, first)
      .map((line) => `${line}\n`)
      .join(''),
  )
  const place = { first, last, prev: hashOf(first - 1), hash: hashOf(last), position, bytes: content.length }
  return { own, chunk: { ...place, data: await compressChunk(content), ...more } }
}

test('a chunk is opened as the lines that were stored', async () => {
  const { own, chunk } = await chunkOf(1, 4)
  assert.deepEqual(await openChunk(chunk), own)
})

test('a chunk with any other byte is refused', async () => {
  const { own } = await chunkOf(1, 3)
  for (let at = 0; at < own.length; at++) {
    const changed = Buffer.from(own)
    changed[at] = (changed[at] ?? 0) ^ 1
    await assert.rejects(openChunk((await chunkOf(1, 3, changed)).chunk), CopyDamagedError, `byte ${at}`)
  }
})

test('a chunk that lacks, repeats or reorders lines, or states others, is refused', async () => {
  const text = (...seqs: number[]) => Buffer.from(seqs.map((seq) => `${lines[seq]}\n`).join(''))
  for (const seqs of [[1, 3], [1, 2], [1, 2, 2, 3], [2, 1, 3], [1, 2, 3, 4], [2, 3], []])
    await assert.rejects(openChunk((await chunkOf(1, 3, text(...seqs))).chunk), CopyDamagedError, seqs.join())
  const { chunk, own } = await chunkOf(1, 3)
  for (const more of [{ first: 2 }, { last: 2 }, { prev: 'a'.repeat(64) }, { hash: 'a'.repeat(64) }] as const)
    await assert.rejects(openChunk({ ...chunk, ...more }), CopyDamagedError, JSON.stringify(more))
  for (const bytes of [0, 1, own.length - 1, own.length + 1, 3_000_000])
    await assert.rejects(openChunk({ ...chunk, bytes }), CopyDamagedError, String(bytes))
  await assert.rejects(openChunk({ ...chunk, data: Buffer.from('no zstd') }), CopyDamagedError)
})

test('a copy whose chunks do not follow one another, or do not end as stated, is not read', async () => {
  const [one, other] = [(await chunkOf(0, 2)).chunk, (await chunkOf(3, 5)).chunk]
  const end = { seq: 5, hash: hashOf(5), bytes: other.position + other.bytes }
  const read = async (chunks: readonly StoredChunk[], more: Partial<CopySource> = {}) => {
    const source: CopySource = {
      ...{ ledgerId: 'l', end, segments: async () => [] },
      chunks: async (position) => chunks.filter((chunk) => chunk.position + chunk.bytes > position),
      ...more,
    }
    await using sequence = await LedgerSequence.open(copyPath('l'), await copyFiles(source))
    const all = Buffer.alloc(end.bytes)
    await sequence.read(all, 0)
    return all.toString()
  }
  assert.equal(await read([one, other]), `${lines.join('\n')}\n`)
  await assert.rejects(read([other]), CopyDamagedError)
  await assert.rejects(read([one]), CopyDamagedError)
  await assert.rejects(read([one, { ...other, prev: 'a'.repeat(64) }]), CopyDamagedError)
  const [prev, hash] = [2, 5].map((seq) => String(JSON.parse(forked[seq] ?? '').hash))
  const text = Buffer.from(
    forked
      .slice(3)
      .map((line) => `${line}\n`)
      .join(''),
  )
  const { chunk } = await chunkOf(3, 5, text, { prev: prev ?? '', hash: hash ?? '' })
  const forkedEnd = { seq: 5, hash: hash ?? '', bytes: end.bytes }
  assert.equal((await openChunk(chunk)).length, text.length)
  await assert.rejects(read([one, chunk], { end: forkedEnd }), /records 3 to 5 are not those that were copied/)
  await assert.rejects(read([one, { ...other, position: other.position + 1 }]), CopyDamagedError)
  await assert.rejects(read([one, other], { end: { ...end, hash: 'a'.repeat(64) } }), CopyDamagedError)
})
