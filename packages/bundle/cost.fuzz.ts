import { gunzipSync, gzipSync } from 'node:zlib'
import { ephemeralSigner } from '@plat/keys'
import { costTarget, type Row } from '../../test/fuzz/cost.ts'
import { readBundle } from './read.ts'
import { readTar, writeTar } from './tar.ts'
import { writeBundle } from './write.ts'

const KIB = 1024
const MIB = 1024 * KIB
const count = (n: number, size: number, each: (at: number) => string) =>
  Array.from({ length: n / size }, (_, at) => each(at))

const archive = (n: number, size: number) =>
  writeTar(
    count(n, size + 512, (at) => `f${at}`)
      .slice(0, 256)
      .map((name) => ({ name, bytes: Buffer.alloc(Math.max(size, n / 300)) })),
  )
/** Files of which each but the first is small, with their signature. */
function signed(n: number): string {
  const small = Array.from({ length: 200 }, (_, at) => ({ name: `f${at}`, bytes: Buffer.alloc(10) }))
  const files = [{ name: 'large', bytes: Buffer.alloc(Math.max(0, n - 512 * KIB)) }, ...small]
  const statement = { issuer: 'ops', revision: 7, issuedAt: 1000, notBefore: null, expiresAt: null }
  return gunzipSync(writeBundle({ statement, files }, [ephemeralSigner()])).toString('latin1')
}

const rows: readonly Row[] = [
  {
    parser: 'tar',
    limit: 64 * MIB,
    families: {
      zeros: (n) => '\0'.repeat(n),
      files: (n) => archive(n, 512).toString('latin1'),
      'large files': (n) => archive(n, n / 300).toString('latin1'),
      tail: (n) => archive(1024, 512).toString('latin1') + '\0'.repeat(Math.min(n, 64 * KIB)),
    },
    prepare: (input) => {
      const bytes = Buffer.from(input, 'latin1')
      return () => readTar(bytes, 257)
    },
  },
  {
    parser: 'bundles',
    limit: 64 * MIB,
    families: { zeros: (n) => '\0'.repeat(n), files: (n) => archive(n, n / 300).toString('latin1'), signed },
    prepare: (input) => {
      const bytes = gzipSync(Buffer.from(input, 'latin1'))
      return () => readBundle(bytes, 64 * MIB)
    },
  },
]

export const target = costTarget('cost/bundle', rows)
