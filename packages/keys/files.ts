import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { type PublicKey, publicKeyOf, readPublicJwk } from './jwk.ts'
import { readKeyUri } from './uri.ts'

/** Returns the path of a key file: a bare path, or `file:///path`. Throws one line for keys elsewhere. */
export function keyFilePath(uriOrPath: string): string {
  const uri = readKeyUri(uriOrPath)
  if (uri.kind === 'file') return uri.path
  throw new Error(`key URI ${uriOrPath}: only keys in files can be used here; use a path or file:///path`)
}

/** Reads the key file that a URI or path names. Throws one line that names it. */
export async function readKeyFile(uriOrPath: string): Promise<{ readonly file: string; readonly text: string }> {
  const file = keyFilePath(uriOrPath)
  try {
    return { file, text: await readFile(file, 'utf8') }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown'
    throw new Error(`${file}: cannot be read (${code})`)
  }
}

/** Reads a private key from PEM (PKCS8) or JWK text. `name` is for messages, which never contain the text. */
export function readPrivateKey(text: string, name: string): KeyObject {
  try {
    const trimmed = text.trim()
    if (trimmed.startsWith('{')) return createPrivateKey({ format: 'jwk', key: JSON.parse(trimmed) })
    return createPrivateKey(trimmed)
  } catch {
    throw new Error(`${name}: holds no private key that can be read; PEM (PKCS8) and JWK are accepted`)
  }
}

/** Reads public keys: PEM blocks (public or private), one JWK, or a JWK set. Throws when there is none or one is invalid. */
export function readPublicKeys(text: string, name: string): readonly PublicKey[] {
  const keys = text.trimStart().startsWith('{') ? jwkKeys(text) : pemKeys(text)
  if (keys.length === 0) throw new Error(`${name}: holds no key`)
  return keys.map((key) => {
    if (key === null)
      throw new Error(`${name}: holds a key of a type that is not built: use Ed25519, P-256, RSA or ML-DSA`)
    return key
  })
}

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]+-----END \1-----/g

function pemKeys(text: string): readonly (PublicKey | null)[] {
  const found = Array.from(text.matchAll(PEM_BLOCK), ([block, label]) => {
    if (label === undefined || !/^(PUBLIC|PRIVATE|EC PRIVATE|RSA PRIVATE) KEY$/.test(label)) return null
    try {
      return publicKeyOf(createPublicKey(block))
    } catch {
      return null
    }
  })
  return found
}

function jwkKeys(text: string): readonly (PublicKey | null)[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return [null]
  }
  if (typeof value !== 'object' || value === null) return [null]
  if ('keys' in value && Array.isArray(value.keys)) return value.keys.map(readPublicJwk)
  return [readPublicJwk(value)]
}

/** Files of a key pair: `key.pem` (PKCS8, mode 0600) and `pub.pem` (SPKI). */
export interface KeyFiles {
  readonly keyPath: string
  readonly pubPath: string
}

/**
 * Creates an Ed25519 pair in `dir`, and `dir` if missing. Throws when `key.pem` exists: a key is never overwritten. Each file is created atomically.
 */
export async function generateKeyFiles(dir: string): Promise<KeyFiles> {
  const keyPath = path.join(dir, 'key.pem')
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const { privateKey } = generateKeyPairSync('ed25519')
  const draft = `${keyPath}.${process.pid}.tmp`
  await writeDurably(draft, privateKey.export({ format: 'pem', type: 'pkcs8' }), 0o600)
  try {
    await link(draft, keyPath)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
      throw new Error(`${keyPath}: exists already; a key is never overwritten`)
    }
    throw error
  } finally {
    await rm(draft, { force: true })
  }
  return { keyPath, pubPath: await writePublicHalf(dir, privateKey) }
}

async function writePublicHalf(dir: string, key: KeyObject): Promise<string> {
  const pubPath = path.join(dir, 'pub.pem')
  const pem = createPublicKey(key).export({ format: 'pem', type: 'spki' })
  const draft = `${pubPath}.${process.pid}.tmp`
  await writeDurably(draft, pem, 0o644)
  await rename(draft, pubPath)
  return pubPath
}

async function writeDurably(file: string, text: string | Buffer, mode: number): Promise<void> {
  await rm(file, { force: true })
  const handle = await open(file, 'wx', mode)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}
