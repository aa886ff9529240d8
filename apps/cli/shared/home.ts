import { constants, existsSync, type Stats } from 'node:fs'
import { access, lstat, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { storageErrorLine } from '@plat/process'
import { LockedError, lockFile } from '@plat/state'
import { CommandError } from './output.ts'

/** A person's login at one admin API. */
export interface LoginSession {
  /**
   * Returns a token that is valid for some time, refreshed if necessary.
   * @throws CommandError if the person has to log in again
   */
  token(): Promise<string>
}

/** Content of `.plat/env`: addresses and tokens of the running plat, one KEY=VALUE per line. */
export interface HomeEnv {
  readonly PLAT_GATEWAY_URL: string
  readonly PLAT_IDENTITY_URL: string
  readonly PLAT_BROKER_TOKEN: string
  readonly PLAT_ADMIN_TOKEN: string
  /** Address of the admin API: `adminListen`, else that of the gateway. */
  readonly PLAT_ADMIN_URL: string
}

/** Addresses and tokens of a gateway, with the login of the person, which is used instead of `PLAT_ADMIN_TOKEN`. */
export interface GatewayEnv extends HomeEnv {
  readonly login?: LoginSession
}

const envKeys = [
  'PLAT_GATEWAY_URL',
  'PLAT_ADMIN_URL',
  'PLAT_IDENTITY_URL',
  'PLAT_BROKER_TOKEN',
  'PLAT_ADMIN_TOKEN',
] as const

/** The `.plat` folder of one directory: all files that plat stores on a laptop. */
export interface PlatFolder {
  /** The directory whose resources are governed. */
  readonly dir: string
  readonly env: string
  readonly gatewayConfig: string
  readonly keys: string
  /** The key pair that signs checkpoints of the ledger. */
  readonly auditKeys: string
  /** The key pair that signs the cards of agents. */
  readonly cardKeys: string
  /** Certificate and key of the listener for kubectl. */
  readonly resourceKeys: string
  /** The kubeconfig for kubectl. */
  readonly kubeconfig: string
  readonly rendered: string
  /** Credentials for MCP servers, copied from Secrets. */
  readonly credentials: string
  /** Secrets as files: `<namespace>/<name>/<key>`, written by the user. */
  readonly secrets: string
  /** ConfigMaps as files, likewise. */
  readonly configMaps: string
  /** JSON Schemas for editors. */
  readonly schemas: string
  readonly state: string
  readonly logs: string
  readonly runs: string
  /** Where the stdio bridge listens. */
  readonly stdioSocket: string
  readonly lock: string
}

/** Paths in the folder. Does not access the disk. */
export function homeOf(dir: string): PlatFolder {
  const at = (...parts: string[]) => join(resolve(dir), '.plat', ...parts)
  return {
    dir: resolve(dir),
    env: at('env'),
    gatewayConfig: at('gateway.json'),
    keys: at('keys'),
    auditKeys: at('keys', 'audit'),
    cardKeys: at('keys', 'cards'),
    resourceKeys: at('keys', 'resources'),
    kubeconfig: at('kubeconfig'),
    rendered: at('rendered'),
    credentials: at('credentials'),
    secrets: at('secrets'),
    configMaps: at('configmaps'),
    schemas: at('schemas'),
    state: at('state'),
    logs: at('logs'),
    runs: at('run'),
    stdioSocket: at('stdio.sock'),
    lock: at('lock'),
  }
}

/** Makes git ignore the whole folder: `git add -A` must not stage keys and tokens. */
const GITIGNORE = '# Made by plat up: keys, tokens and state.\n*\n'

/**
 * Creates the folders with access for the owner only, because they contain keys and tokens.
 * @throws CommandError if `.plat` exists and another user owns it or can read it.
 */
export async function makeHome(home: PlatFolder): Promise<void> {
  await checkPrivate(home)
  const { keys, rendered, credentials, secrets, configMaps, state, logs, runs } = home
  const own = dirname(home.env)
  try {
    // Without this, a read-only file system is reported as a missing folder.
    await access(nearestExisting(own), constants.W_OK)
    for (const folder of [own, keys, rendered, credentials, secrets, configMaps, state, logs, runs]) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
    }
    await writeFile(join(own, '.gitignore'), GITIGNORE)
  } catch (error) {
    throw new CommandError(
      storageErrorLine(asError(error), own) ?? `${own} cannot be created: ${asError(error).message}`,
    )
  }
}

/** Returns the path, or the first folder above it that exists. */
function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path))
}

const OTHERS_MODE = 0o077

/**
 * Checks that `.plat` and its `env` file, where they exist, belong to the user of this process and are closed to everyone else. Another
 * user could otherwise leave a `.plat` in a parent folder and have commands send tokens to an address of their choice.
 * @throws CommandError that names the path and the fix.
 */
async function checkPrivate(home: PlatFolder): Promise<void> {
  const uid = process.getuid?.()
  if (uid === undefined) return // Windows: the folder inherits the access list of the user's profile.
  for (const path of [dirname(home.env), home.env]) {
    // Checks the link and its target: the owner of a link chooses its target.
    for (const stats of [await lstat(path).catch(absent), await stat(path).catch(absent)]) {
      if (stats === null) continue
      if (stats.uid !== uid)
        throw new CommandError(
          `${path} belongs to another user (uid ${stats.uid}) and is not used; remove it, or name your own folder with -dir`,
        )
      if (!stats.isSymbolicLink() && (stats.mode & OTHERS_MODE) !== 0)
        throw new CommandError(
          `${path} can be read by other users (mode ${(stats.mode & 0o777).toString(8)}) and is not used; close it with: chmod ${stats.isDirectory() ? '700' : '600'} ${path}`,
        )
    }
  }
}

/** Null for a path that does not exist. Throws any other error. */
function absent(error: unknown): Stats | null {
  if (error instanceof Error && 'code' in error && ['ENOENT', 'ENOTDIR'].includes(String(error.code))) return null
  throw error
}

/**
 * Locks the folder for this process; the kernel releases the lock when the process ends.
 * @throws CommandError if another `plat up` holds it.
 */
export function lockHome(home: PlatFolder): { release(): void } {
  try {
    return { release: lockFile(home.lock, home.dir) }
  } catch (error) {
    if (!(error instanceof LockedError))
      throw new CommandError(storageErrorLine(asError(error), home.lock) ?? asError(error).message)
    throw new CommandError(
      `${home.dir} is already governed by a running plat up; stop it first, or use another directory`,
    )
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** Writes a file atomically, readable only by the owner. */
export async function writePrivate(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`
  await writeFile(temporary, text, { mode: 0o600 })
  await rename(temporary, path)
}

export async function writeHomeEnv(home: PlatFolder, env: HomeEnv): Promise<void> {
  await writePrivate(home.env, envKeys.map((key) => `${key}=${env[key]}\n`).join(''))
}

/** Reads the env file of this directory. Returns null if there is none. */
export async function readHomeEnv(home: PlatFolder): Promise<HomeEnv | null> {
  await checkPrivate(home)
  const text = await readFile(home.env, 'utf8').catch(() => null)
  if (text === null) return null
  const values = new Map(
    text.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const value = (key: string): string => {
    const found = values.get(key)
    if (!found) throw new CommandError(`${home.env}: ${key} is missing; start plat up again to write the file`)
    return found
  }
  return {
    PLAT_GATEWAY_URL: value('PLAT_GATEWAY_URL'),
    PLAT_IDENTITY_URL: value('PLAT_IDENTITY_URL'),
    PLAT_BROKER_TOKEN: value('PLAT_BROKER_TOKEN'),
    PLAT_ADMIN_TOKEN: value('PLAT_ADMIN_TOKEN'),
    // Files of earlier versions lack it.
    PLAT_ADMIN_URL: values.get('PLAT_ADMIN_URL') || value('PLAT_GATEWAY_URL'),
  }
}

/**
 * Finds the running plat: in `dir` if given, else in the nearest parent folder with `.plat/env`.
 * @throws CommandError with how to start one.
 */
export async function findHome(
  dir: string | undefined,
  from = process.cwd(),
): Promise<{ home: PlatFolder; env: HomeEnv }> {
  for (let folder = resolve(dir ?? from); ; folder = dirname(folder)) {
    const home = homeOf(folder)
    const env = await readHomeEnv(home)
    if (env !== null) return { home, env }
    if (dir !== undefined || dirname(folder) === folder) break
  }
  const where = dir === undefined ? 'in this folder or above it' : `in ${dir}`
  throw new CommandError(`no running plat found ${where}; start one with plat up, or name its folder with -dir`)
}
