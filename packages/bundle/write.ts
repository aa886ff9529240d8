import { gzipSync } from 'node:zlib'
import type { LocalSigner } from '@plat/keys'
import { signJws } from '@plat/tokens'
import { MAX_FILES, SIGNATURES } from './read.ts'
import { type BundleStatement, digestOf, statementMembers, TYPE } from './statement.ts'
import { type Entry, writeTar } from './tar.ts'

/** Content of a bundle. */
export interface BundleContent {
  readonly statement: Omit<BundleStatement, 'digest'>
  readonly files: readonly Entry[]
}

/** Returns a bundle signed by all of these keys. Throws on an invalid name, and on too many files. */
export function writeBundle({ statement, files }: BundleContent, signers: readonly LocalSigner[]): Buffer {
  if (files.length > MAX_FILES) throw new Error(`a bundle holds at most ${MAX_FILES} files`)
  const claims = statementMembers({ ...statement, digest: digestOf(files) })
  const lines = signers.map((signer) => `${signJws(signer, { typ: TYPE }, claims)}\n`)
  return gzipSync(writeTar([{ name: SIGNATURES, bytes: Buffer.from(lines.join('')) }, ...files]))
}
