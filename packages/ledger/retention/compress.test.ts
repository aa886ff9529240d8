import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { before, test } from 'node:test'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { MemoryDisk } from '@plat/testkit/disk'
import { tempFolder } from '@plat/testkit/local'
import { appendSlowly, openSealing } from '@plat/testkit/sealed'
import { LedgerSequence } from '../index.ts'
import { sourceFilesOver } from '../sequence/files.ts'
import { FRAME_BYTES, type FrameSizes, writeFrameTable } from '../sequence/frame-table.ts'
import { segmentPath } from '../sequence/segment-entry.ts'
import { SegmentListError } from '../sequence/segment-list-error.ts'
import { compressSegment, SegmentMismatchError } from './compress.ts'

const path = join(tempFolder(), 'audit.jsonl')
let sealed: ReadonlyMap<string, Buffer> = new Map()
let lines: Buffer = Buffer.alloc(0)

before(async () => {
  const disk = new MemoryDisk()
  const ledger = await openSealing({ path, files: disk })
  await appendSlowly(ledger, 60)
  await ledger.close()
  sealed = disk.afterPowerCut()
  lines = await allOf(disk)
})

async function allOf(disk: MemoryDisk): Promise<Buffer> {
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(disk))
  const all = Buffer.alloc(await sequence.size())
  assert.equal(await sequence.read(all, 0), all.length)
  return all
}

/** Compresses the segment at this index. */
async function compress(disk: MemoryDisk, index: number): Promise<void> {
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(disk))
  const { segments } = sequence
  const segment = segments[index]
  assert.ok(segment !== undefined)
  await compressSegment({ ledgerPath: path, segment, before: segments[index - 1] ?? null, files: disk })
}

function namesOf(disk: MemoryDisk): string[] {
  return disk.list(dirname(path)).filter((name) => /\d{20}/.test(name))
}

test('a compressed segment replaces the plain one, and every position has the same bytes', async () => {
  const disk = new MemoryDisk(sealed)
  const { length } = namesOf(disk)
  assert.ok(length >= 3)
  for (let index = 0; index < length; index++) await compress(disk, index)
  assert.ok(
    namesOf(disk).every((name) => name.endsWith('.jsonl.zst')),
    namesOf(disk).join(),
  )
  assert.deepEqual(await allOf(disk), lines)
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(disk))
  for (let at = 0; at < lines.length; at += 997) {
    const some = Buffer.alloc(500)
    const count = await sequence.read(some, at)
    assert.deepEqual(some.subarray(0, count), lines.subarray(at, at + 500))
  }
  const first = Buffer.from(disk.readWhole(`${segmentPath(path, 0)}.zst`) ?? [])
  assert.deepEqual(zstdDecompressSync(first), lines.subarray(0, sequence.parts[1]?.offset))
})

test('a reader that listed the segments before goes on when they are compressed', async () => {
  const disk = new MemoryDisk(sealed)
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(disk))
  for (const [index, { offset }] of sequence.parts.slice(0, -1).entries()) {
    await compress(disk, index)
    const some = Buffer.alloc(100)
    await sequence.read(some, offset + 10)
    assert.deepEqual(some, lines.subarray(offset + 10, offset + 110))
  }
})

test('with EIO, ENOSPC or a short write at each operation, one complete file is there and a repetition compresses it', async () => {
  const [, plain = ''] = namesOf(new MemoryDisk(sealed))
  for (const kind of ['EIO', 'ENOSPC', 'short'] as const) {
    for (let at = 0; ; at++) {
      const disk = new MemoryDisk(sealed, [{ at, kind }])
      const failed = await compress(disk, 1)
        .then(() => null)
        .catch((error: Error) => error)
      if (failed !== null) assert.match(failed.message, /^(?:EIO|ENOSPC)/)
      for (const files of [new MemoryDisk(disk.afterPowerCut()), disk]) {
        assert.deepEqual(await allOf(files), lines, `${kind} at operation ${at}`)
        if (namesOf(files).includes(plain)) await compress(files, 1)
        assert.deepEqual(await allOf(files), lines)
        const compressed = namesOf(files).filter((name) => name.includes('.zst'))
        assert.deepEqual(compressed, [`${plain}.zst`], `${kind} at operation ${at}`)
      }
      if (disk.operations <= at) break
    }
  }
})

test('a damaged segment stays as it is', async () => {
  const files = new Map(sealed)
  const plain = segmentPath(path, 0)
  const damaged = Buffer.from(files.get(plain) ?? [])
  damaged[700] = (damaged[700] ?? 0) ^ 1
  files.set(plain, damaged)
  const disk = new MemoryDisk(files)
  await assert.rejects(compress(disk, 0), SegmentMismatchError)
  assert.deepEqual(disk.readWhole(plain), damaged)
  assert.equal(
    namesOf(disk).some((name) => name.includes('.zst')),
    false,
  )
})

/** Returns the sealed ledger with this file instead of its first segment. */
function withFirst(content: Buffer): MemoryDisk {
  const files = new Map(sealed)
  files.delete(segmentPath(path, 0))
  return new MemoryDisk(files.set(`${segmentPath(path, 0)}.zst`, content))
}

async function readFirst(content: Buffer): Promise<void> {
  await using sequence = await LedgerSequence.open(path, sourceFilesOver(withFirst(content)))
  await sequence.read(Buffer.alloc(10), 0)
}

function framed(frames: readonly Buffer[], sizes: readonly FrameSizes[]): Buffer {
  return Buffer.concat([...frames, writeFrameTable(sizes)])
}

test('a frame that would become larger than its entry, or needs more memory, is refused with the place of it', async () => {
  const params = { [constants.ZSTD_c_checksumFlag]: 1, [constants.ZSTD_c_windowLog]: 17 }
  const zeros = zstdCompressSync(Buffer.alloc(64 * 1024 * 1024), { params })
  const bytes = zeros.length
  // A frame of five bytes that states a window of 128 MiB.
  const wide = Buffer.from('28b52ffd00882900006162636465', 'hex')
  const bombs = [
    framed([zeros], [{ bytes, plainBytes: FRAME_BYTES }]),
    framed(
      [zeros, zeros],
      [
        { bytes, plainBytes: 100 },
        { bytes, plainBytes: 100 },
      ],
    ),
    framed([Buffer.alloc(300)], [{ bytes: 300, plainBytes: 300 }]),
    framed([wide], [{ bytes: wide.length, plainBytes: 5 }]),
  ]
  // Refused before there is more memory than stated: by zlib, not by the size of what came out.
  const reasons = [/larger than \d+ bytes/, /larger than \d+ bytes/, /Unknown frame|prefix/i, /too much memory/]
  for (const [index, bomb] of bombs.entries()) {
    await assert.rejects(readFirst(bomb), (error: Error) => {
      assert.match(error.message, reasons[index] ?? /^$/)
      assert.ok(error instanceof SegmentListError, String(error))
      assert.match(error.message, /\.jsonl\.zst is damaged at bytes 0 to \d+: a frame cannot be decompressed/)
      return true
    })
  }
})

test('a table that does not describe exactly its file is refused in one line', async () => {
  const frame = zstdCompressSync(lines.subarray(0, 1000))
  const table = writeFrameTable([{ bytes: frame.length, plainBytes: 1000 }])
  const withTable = (change: (copy: Buffer) => void) => {
    const copy = Buffer.from(table)
    change(copy)
    return Buffer.concat([frame, copy])
  }
  const files = [
    Buffer.alloc(0),
    frame,
    table,
    Buffer.concat([frame, frame, table]),
    Buffer.concat([frame, table.subarray(0, -1)]),
    withTable((copy) => copy.writeUInt32LE(0xffff_ffff, copy.length - 9)),
    withTable((copy) => copy.writeUInt32LE(0, copy.length - 9)),
    withTable((copy) => copy.writeUInt32LE(0, 8)),
    withTable((copy) => copy.writeUInt32LE(FRAME_BYTES + 1, 12)),
    withTable((copy) => copy.writeUInt8(0x80, copy.length - 5)),
    withTable((copy) => copy.writeUInt32LE(7, 4)),
  ]
  for (const file of files) {
    await assert.rejects(readFirst(file), (error: Error) => {
      assert.ok(error instanceof SegmentListError, String(error))
      assert.match(
        error.message,
        /0{20}\.jsonl\.zst is damaged: it does not end with a valid table of its frames: restore it/,
      )
      return true
    })
  }
})
