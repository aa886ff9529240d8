import { gzipSync } from 'node:zlib'
import { whenAllReady } from '@plat/core'
import type { LocalSigner, Signer } from '@plat/keys'
import { signJws } from '@plat/tokens'
import { MAX_FILES, SIGNATURES } from './read.ts'
import { type BundleStatement, digestOf, statementMembers, TYPE } from './statement.ts'
import { type Entry, writeTar } from './tar.ts'

export interface BundleContent {
  readonly statement: Omit<BundleStatement, 'digest'>
  readonly files: readonly Entry[]
}

/** Returns a bundle signed by all of these keys; with a key of a key service, a promise of it. Throws on an invalid name, and on too many files. */
export function writeBundle(content: BundleContent, signers: readonly LocalSigner[]): Buffer
export function writeBundle(content: BundleContent, signers: readonly Signer[]): Buffer | Promise<Buffer>
export function writeBundle({ statement, files }: BundleContent, signers: readonly Signer[]): Buffer | Promise<Buffer> {
  if (files.length > MAX_FILES) throw new Error(`a bundle holds at most ${MAX_FILES} files`)
  const claims = statementMembers({ ...statement, digest: digestOf(files) })
  const signatures = signers.map((signer) => signJws(signer, { typ: TYPE }, claims))
  return whenAllReady(signatures, (lines) => {
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
    return gzipSync(writeTar([{ name: SIGNATURES, bytes }, ...files]))
  })
}
