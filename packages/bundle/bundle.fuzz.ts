import assert from 'node:assert/strict'
import { ephemeralSigner } from '@plat/keys'
import { signJws } from '@plat/tokens'
import fc from 'fast-check'
import { fuzzTarget } from '../../test/fuzz/target.ts'
import { readSignatures } from './read.ts'
import { isEntryName, readTar, writeTar } from './tar.ts'

const archive = writeTar([
  { name: 'bundle.jws', bytes: Buffer.from('a.b.c\n') },
  { name: 'a/b.json', bytes: Buffer.from('{"version":1}') },
])
const digest = '0'.repeat(64)
const signature = signJws(
  ephemeralSigner(),
  { typ: 'plat-config-bundle+jws' },
  { iss: 'o', revision: 1, iat: 1, digest },
)

/** One change of the bytes: a piece is replaced by any bytes. */
const change = fc.record({
  at: fc.nat(2600),
  cut: fc.nat(20),
  bytes: fc.string({ maxLength: 20, unit: 'binary-ascii' }),
})
const changes = fc.array(change, { minLength: 1, maxLength: 4 })

function changed(bytes: Buffer, list: readonly { at: number; cut: number; bytes: string }[]): Buffer {
  let text = bytes.toString('latin1')
  for (const { at, cut, bytes: instead } of list) text = text.slice(0, at) + instead + text.slice(at + cut)
  return Buffer.from(text, 'latin1')
}

/** Corrects the checksum of the header at `at`, so that later fields are parsed. */
function sealed(bytes: Buffer, at: number): Buffer {
  const header = bytes.subarray(at, at + 512)
  if (header.length < 512) return bytes
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return bytes
}

export const target = fuzzTarget('config-bundle', {
  'any bytes are an archive of plain files in the archive itself, or none': fc.property(
    changes,
    fc.constantFrom(null, 0, 1024),
    (list, seal) => {
      const bytes = changed(archive, list)
      const entries = readTar(seal === null ? bytes : sealed(bytes, seal), 4)
      if (typeof entries === 'string') return
      assert.ok(entries.length <= 4)
      assert.equal(new Set(entries.map(({ name }) => name)).size, entries.length)
      for (const entry of entries) {
        assert.ok(isEntryName(entry.name) && !entry.name.includes('..'))
        assert.ok(entry.bytes.length < bytes.length)
      }
    },
  ),
  'any text is a list of signatures over one statement, or none': fc.property(changes, (list) => {
    const read = readSignatures(changed(Buffer.from(`${signature}\n${signature}\n`), list))
    if (typeof read === 'string') return
    assert.ok(read.every(({ header }) => header.typ === 'plat-config-bundle+jws'))
  }),
})
