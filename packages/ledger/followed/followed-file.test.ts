import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ephemeralSigner, readPublicJwk } from '@plat/keys'
import { fillLedger } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { OpenLedger, openLedgerKey, pubkeyOf } from '@plat/testkit/open-ledger'
import { appendSlowly, appendUntilSealed, openSealing } from '@plat/testkit/sealed'
import { headPath, writeHead } from '../writer/head-file.ts'
import { writeEntry } from './entry-line.ts'
import { FollowedFile, type FollowedFileOptions } from './followed-file.ts'

const pinned = (hex: string) => {
  const key = readPublicJwk({ kty: 'OKP', crv: 'Ed25519', x: Buffer.from(hex, 'hex').toString('base64url') })
  return key ?? assert.fail('no key')
}

function setUp(own: Partial<FollowedFileOptions> & { readonly sign?: boolean } = {}) {
  const { key, pubkey } = openLedgerKey()
  const path = join(tempFolder(), 'client.jsonl')
  const { sign = false, ...more } = own
  const rules = { key: null, requireSigned: false, allowRestarts: false, continuation: false, position: null }
  const options = { ...rules, path, ...(sign && { key: pinned(pubkey) }), ...more }
  const client = () => new OpenLedger({ path, ...(sign && { key }) })
  const open = (position = options.position) => new FollowedFile({ ...options, position })
  return { path, key, client, open, followed: open() }
}

/** The kind of the fault that a look finds, or the number of the record to anchor. */
async function seen(followed: FollowedFile) {
  const { head, fault } = await followed.look()
  return fault === null ? (head?.seq ?? null) : fault.kind
}

const lines = (path: string) => readFileSync(path, 'utf8').split('\n').slice(0, -1)
const write = (path: string, all: readonly string[]) => writeFileSync(path, all.map((line) => `${line}\n`).join(''))

test('a ledger in the open format is followed from record to record, also by another process', async () => {
  const { client, followed, open, path } = setUp()
  const ledger = client().append(10)
  assert.equal(await seen(followed), 9)
  assert.equal(await seen(followed), 9)
  ledger.append(5)
  assert.equal(await seen(open(followed.position)), 14)
  assert.equal(await seen(followed), 14)
  // Half of a line is still being written.
  appendFileSync(path, '{"hash":"ab')
  assert.equal(await seen(followed), 14)
  assert.equal(followed.position?.head.hash, ledger.head.hash)
})

test('a ledger of plat is followed, over its sealed segments, and its head file shows what is missing', async () => {
  const { path, followed, open } = setUp()
  const ledger = await openSealing({ path })
  await appendUntilSealed(ledger, path, 1)
  const first = await seen(followed)
  await appendUntilSealed(ledger, path, 3)
  const places = await appendSlowly(ledger, 3)
  await ledger.close()
  const last = places.at(-1)?.seq
  assert.ok(Number(last) > Number(first))
  assert.equal(await seen(followed), last)
  assert.equal(await seen(open()), last)
  const whole = lines(path)
  write(path, whole.slice(0, -1))
  assert.equal(await seen(open()), 'truncated')
})

test('rewritten, removed, doubled, missing and foreign records are faults, at any position', async () => {
  const { path, client, open } = setUp()
  client().append(20)
  const good = lines(path)
  const before = open()
  assert.equal(await seen(before), 19)
  const other = join(tempFolder(), 'other.jsonl')
  new OpenLedger({ path: other }).append(30, { event: 'other' })
  const foreign = lines(other)
  const cases: Readonly<Record<string, readonly [readonly string[], string, string]>> = {
    'a changed byte': [good.with(7, good[7]?.replace('tool', 'fool') ?? ''), 'broken', 'broken'],
    'a changed first record': [good.with(0, good[0]?.replace('tool', 'fool') ?? ''), 'broken', 'broken'],
    'a removed record': [good.toSpliced(7, 1), 'gap', 'forked'],
    'a doubled record': [good.toSpliced(7, 0, good[7] ?? ''), 'forked', 'forked'],
    'a swapped pair': [good.with(7, good[8] ?? '').with(8, good[7] ?? ''), 'gap', 'gap'],
    'a foreign record': [good.with(7, foreign[7] ?? ''), 'forked', 'forked'],
    'no first record': [good.slice(1), 'gap', 'replaced'],
    'a longer history of another ledger': [foreign, '29', 'replaced'],
    'an empty line': [good.toSpliced(7, 0, ''), 'broken', 'forked'],
    'a cut end': [good.slice(0, -1), '18', 'truncated'],
    nothing: [[], 'null', 'truncated'],
    'a fork after a common beginning': [[...good.slice(0, 10), ...fork(good[9] ?? '')], '39', 'forked'],
  }
  for (const [name, [all, first, again]] of Object.entries(cases)) {
    write(path, all)
    assert.equal(String(await seen(open())), first, `${name}, at first`)
    assert.equal(String(await seen(open(before.position))), again, name)
    assert.equal(typeof (await seen(before)), 'string', name)
  }
  write(path, good)
  assert.equal(await seen(before), 19)
})

function fork(after: string): string[] {
  let prev: string = JSON.parse(after).hash
  return Array.from({ length: 30 }, (_, index) => {
    const { text, hash } = writeEntry({ seq: 10 + index, prev }, { event: 'fork' })
    prev = hash
    return text.trimEnd()
  })
}

test('signatures of the pinned key are verified, and required where they must be', async () => {
  const { path, client, followed, open } = setUp({ sign: true, requireSigned: true })
  const ledger = client().append(10)
  const look = await followed.look()
  assert.deepEqual([look.head?.seq, look.isSigned, look.fault], [9, true, null])
  // Records without a signature wait for one; after three looks they are a fault.
  ledger.append(3, {}, false)
  assert.deepEqual([await seen(followed), await seen(followed), await seen(followed)], [9, 9, 'unsigned'])
  ledger.append(1)
  assert.equal(await seen(followed), 13)
  assert.equal(await seen(setUp({ ...setUp({ sign: true }).open(), path, sign: true }).open()), 'signature')
  new OpenLedger({ path: `${path}.2` }).append(4)
  assert.equal(await seen(setUp({ path: `${path}.2`, sign: true, requireSigned: true }).open()), 'unsigned')
  // A signature that was moved from another record.
  const all = lines(path)
  const sig = /"sig":"[0-9a-f]+"/.exec(all[9] ?? '')?.[0] ?? ''
  write(path, all.with(13, all[13]?.replace(/"sig":"[0-9a-f]+"/, sig) ?? ''))
  assert.equal(await seen(open()), 'signature')
})

test("the signed head of plat's own ledger counts as its signature", async () => {
  const path = join(tempFolder(), 'audit.jsonl')
  await fillLedger(path, 8)
  const signer = ephemeralSigner()
  const last = JSON.parse(lines(path).at(-1) ?? '')
  const { ledgerId } = JSON.parse(lines(path)[0] ?? '').rec
  const state = async (seq: number, hash: string, by = signer) =>
    writeFileSync(headPath(path), await writeHead(ledgerId, { seq, hash }, by))
  const own = { path, key: signer.publicKey, requireSigned: true }
  await state(last.seq, last.hash)
  assert.equal(await seen(setUp(own).open()), last.seq)
  await state(last.seq, last.hash, ephemeralSigner())
  assert.equal(await seen(setUp(own).open()), 'signature')
  await state(last.seq, 'a'.repeat(64))
  assert.equal(await seen(setUp(own).open()), 'forked')
  await state(last.seq + 1, 'a'.repeat(64))
  assert.equal(await seen(setUp(own).open()), 'truncated')
  writeFileSync(headPath(path), '{}')
  assert.equal(await seen(setUp(own).open()), 'broken')
})

test('a ledger that begins anew is accepted only where it may, and only if it is signed where it must be', async () => {
  const strict = setUp()
  strict.client().append(10)
  assert.equal(await seen(strict.followed), 9)
  rmSync(strict.path)
  strict.client().append(20, { event: 'anew' })
  assert.equal(await seen(strict.followed), 'replaced')
  const { path, client, followed, key } = setUp({ sign: true, requireSigned: true, allowRestarts: true })
  client().append(10)
  assert.equal(await seen(followed), 9)
  copyFileSync(path, `${path}.kept`)
  // Another program begins a ledger without the key.
  rmSync(path)
  new OpenLedger({ path }).append(20, { event: 'anew' })
  assert.equal(await seen(followed), 'unsigned')
  // A beginning of the same ledger is no new one.
  write(path, lines(`${path}.kept`).slice(0, 5))
  assert.equal(await seen(followed), 'truncated')
  rmSync(path)
  new OpenLedger({ path, key }).append(3, { event: 'anew' })
  const look = await followed.look()
  assert.deepEqual([look.head?.seq, look.isRestarted, look.fault], [2, true, null])
  followed.anchored()
  assert.deepEqual([(await followed.look()).isRestarted, pubkeyOf(key).length], [false, 64])
})

test('a renamed file is read to its end before the one that continues it', async () => {
  const { client, followed, open, path } = setUp()
  const ledger = client().append(10)
  assert.equal(await seen(followed), 9)
  ledger.append(5).rotate(0).append(5)
  assert.equal(await seen(followed), 19)
  ledger.rotate(15)
  assert.equal(await seen(followed), 'unreadable')
  ledger.append(1)
  assert.equal(await seen(followed), 20)
  assert.equal(await seen(open()), 20)
  rmSync(`${path}.${'0'.repeat(20)}.jsonl`)
  assert.equal(await seen(open()), 'gap')
})

test('with continuation a file may begin later, and be replaced by one that continues it', async () => {
  const { client, path, followed, open } = setUp({ continuation: true })
  const ledger = client().append(10)
  const strict = setUp({ path }).open()
  assert.deepEqual([await seen(followed), await seen(strict)], [9, 9])
  rmSync(path)
  ledger.append(5)
  assert.equal(await seen(followed), 14)
  assert.equal(await seen(strict), 'replaced')
  assert.equal(await seen(open()), 14)
  assert.equal(await seen(setUp({ path }).open()), 'gap')
  rmSync(path)
  ledger.append(1)
  writeFileSync(path, '')
  ledger.append(1)
  assert.equal(await seen(followed), 'gap')
})

test('links, FIFOs, folders, missing files and devices are not read, and nothing waits for them', async () => {
  const { client, path, followed } = setUp()
  assert.equal(await seen(followed), 'unreadable')
  client().append(3)
  renameSync(path, `${path}.real`)
  symlinkSync(`${path}.real`, path)
  assert.equal(await seen(followed), 'unreadable')
  rmSync(path)
  execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', path])
  assert.equal(await seen(followed), 'unreadable')
  assert.equal(await seen(setUp({ path: '/dev/zero' }).open()), 'unreadable')
  assert.equal(await seen(setUp({ path: tempFolder() }).open()), 'unreadable')
})

test('huge lines, endless files and binary content end the reading', async () => {
  const { path, followed, client, open } = setUp()
  writeFileSync(path, '')
  truncateSync(path, 2 ** 40)
  assert.equal(await seen(followed), 'broken')
  writeFileSync(path, Buffer.alloc(3_000_000, 'x'))
  assert.equal(await seen(followed), 'broken')
  writeFileSync(path, Buffer.alloc(3_000_000, '\n'))
  assert.equal(await seen(followed), 'broken')
  rmSync(path)
  client().append(3)
  appendFileSync(path, Buffer.alloc(2_000_000, 'x'))
  assert.equal(await seen(open()), 'broken')
  const members = { text: 'x'.repeat(1_100_000) }
  rmSync(path)
  client().append(1, members)
  assert.equal(await seen(open()), 'broken')
})
