import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { tempFolder } from '@plat/testkit/local'
import { unpackDebianPackage } from '@plat/testkit/processes/debian'
import { installOnce } from '@plat/testkit/processes/install-once'

const CACHE = resolve(import.meta.dirname, '../../../node_modules/.cache/plat-softhsm')
const PACKAGES = ['softhsm2', 'libsofthsm2', 'opensc', 'opensc-pkcs11']
export const PIN = '9876-secret'

/** A token of SoftHSM with keys, through the tools of OpenSC. */
export interface SoftHsm {
  readonly env: NodeJS.ProcessEnv
  readonly modulePath: string
  readonly pinFile: string
  /** Runs `pkcs11-tool` with a login. */
  tool(...args: readonly string[]): void
}

/** Starts with a new token `plat`. Downloads the Debian packages into a cache if the machine has none. Rejects where it cannot. */
export async function createSoftHsm(): Promise<SoftHsm> {
  const { programs, modulePath, libraries } = await installed()
  const dir = tempFolder()
  mkdirSync(join(dir, 'tokens'))
  writeFileSync(join(dir, 'softhsm2.conf'), `directories.tokendir = ${join(dir, 'tokens')}\nlog.level = ERROR\n`)
  const pinFile = join(dir, 'pin')
  writeFileSync(pinFile, `${PIN}\n`, { mode: 0o600 })
  const env = {
    PATH: `${programs}:${process.env.PATH}`,
    SOFTHSM2_CONF: join(dir, 'softhsm2.conf'),
    ...(libraries !== null && { LD_LIBRARY_PATH: libraries }),
  }
  const run = (program: string, args: readonly string[]) =>
    void execFileSync(join(programs, program), args, { env, stdio: 'pipe' })
  run('softhsm2-util', [
    '--module',
    modulePath,
    '--init-token',
    '--free',
    '--label',
    'plat',
    '--so-pin',
    '1234',
    '--pin',
    PIN,
  ])
  const tool = (...args: readonly string[]) =>
    run('pkcs11-tool', ['--module', modulePath, '--token-label', 'plat', '--login', '--pin', PIN, ...args])
  return { env, modulePath, pinFile, tool }
}

async function installed(): Promise<{
  readonly programs: string
  readonly modulePath: string
  readonly libraries: string | null
}> {
  const own = '/usr/lib/softhsm/libsofthsm2.so'
  if (existsSync('/usr/bin/pkcs11-tool') && existsSync('/usr/bin/softhsm2-util') && existsSync(own)) {
    return { programs: '/usr/bin', modulePath: own, libraries: null }
  }
  const root = join(CACHE, 'root')
  const reason = await installOnce(CACHE, async () => {
    mkdirSync(root, { recursive: true })
    for (const name of PACKAGES) {
      const folder = join(CACHE, name)
      execFileSync('cp', ['-a', `${unpackDebianPackage(name, folder)}/.`, root])
      rmSync(folder, { recursive: true })
    }
  })
  if (reason !== null) throw new Error(`${PACKAGES.join(' ')}: ${reason}`)
  const libraries = join(root, `usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`)
  return { programs: join(root, 'usr/bin'), modulePath: join(root, 'usr/lib/softhsm/libsofthsm2.so'), libraries }
}
