import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { freePort, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'

const CACHE = path.resolve(import.meta.dirname, '../../../../../node_modules/.cache/plat-rsyslog')
const PACKAGES = ['rsyslog', 'rsyslog-gnutls', 'libgnutls30', 'libestr0', 'libfastjson4', 'liblognorm5']

/** A private rsyslog process. */
export interface Rsyslog {
  readonly port: number
  /** Lines it has written: structured data, a space, and the message. */
  lines(): string[]
  /** Kills it and starts it again on the same port. */
  kill(): Promise<void>
  start(): Promise<void>
}

/** Its TLS certificate, or null for plain TCP. */
export interface RsyslogTls {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** Starts rsyslog. Downloads it with apt into a cache if the machine has none: needs Debian, and about a minute once. */
export async function startRsyslog(t: TestContext, tls: RsyslogTls | null): Promise<Rsyslog> {
  const program = installed()
  const dir = tempFolder()
  const port = await freePort()
  const at = (name: string) => path.join(dir, name)
  for (const [name, text] of Object.entries(tls ?? {})) await writeFile(at(name), text)
  await writeFile(at('rsyslog.conf'), configuration(dir, port, tls !== null))
  let child: ChildProcess | null = null
  const kill = async () => {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  const start = async () => {
    const options = ['-n', '-f', at('rsyslog.conf'), '-i', at('pid'), '-M', program.modules]
    child = spawn(program.path, options, {
      stdio: 'ignore',
      env: { ...process.env, LD_LIBRARY_PATH: program.libraries },
    })
    const bound = new RegExp(`:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A `)
    await until(() => bound.test(readFileSync('/proc/net/tcp', 'utf8')), 'rsyslog to listen')
  }
  t.after(kill)
  await start()
  return {
    port,
    lines: () => (existsSync(at('out.log')) ? readFileSync(at('out.log'), 'utf8').split('\n').slice(0, -1) : []),
    kill,
    start,
  }
}

function configuration(dir: string, port: number, tls: boolean): string {
  const files = ['CA', 'Cert', 'Key'].map((name) => {
    const file = path.join(dir, name.toLowerCase())
    return `defaultNetstreamDriver${name}File="${file}"`
  })
  const driver = 'streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="anon"'
  return `global(workDirectory="${dir}" maxMessageSize="1m" ${tls ? files.join(' ') : ''})
module(load="imtcp" ${tls ? driver : ''})
template(name="received" type="string" string="%structured-data% %msg%\\n")
input(type="imtcp" address="127.0.0.1" port="${port}")
action(type="omfile" file="${path.join(dir, 'out.log')}" template="received" asyncWriting="off")
`
}

function installed() {
  const own = ['/usr/sbin/rsyslogd', '/usr/local/sbin/rsyslogd'].find((file) => existsSync(file))
  if (own !== undefined) return { path: own, modules: '/usr/lib/x86_64-linux-gnu/rsyslog', libraries: '' }
  const root = path.join(CACHE, 'root')
  if (!existsSync(root)) {
    // Unpacks into a temporary folder first, so that an interrupted run leaves nothing partial.
    const partial = `${CACHE}/partial.${process.pid}`
    mkdirSync(partial, { recursive: true })
    execFileSync('apt-get', ['download', '-q', '-o', 'Acquire::Retries=5', ...PACKAGES], {
      cwd: partial,
      stdio: 'pipe',
    })
    const debs = readdirSync(partial).filter((name) => name.endsWith('.deb'))
    for (const deb of debs) execFileSync('dpkg-deb', ['-x', deb, 'root'], { cwd: partial })
    renameSync(path.join(partial, 'root'), root)
    rmSync(partial, { recursive: true })
  }
  const libraries = path.join(root, 'usr/lib/x86_64-linux-gnu')
  return { path: path.join(root, 'usr/sbin/rsyslogd'), modules: path.join(libraries, 'rsyslog'), libraries }
}
