import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { findHome, homeOf, makeHome, writeHomeEnv } from './home.ts'

const env = {
  PLAT_GATEWAY_URL: 'http://127.0.0.1:1',
  PLAT_ADMIN_URL: 'http://127.0.0.1:1',
  PLAT_IDENTITY_URL: 'http://127.0.0.1:2',
  PLAT_BROKER_TOKEN: 'broker',
  PLAT_ADMIN_TOKEN: 'admin',
}

async function setup() {
  const home = homeOf(tempFolder())
  await makeHome(home)
  await writeHomeEnv(home, env)
  return home
}

test('git add -A does not stage keys or tokens', async () => {
  const home = await setup()
  execFileSync('git', ['init', '-q'], { cwd: home.dir })
  execFileSync('git', ['add', '-A'], { cwd: home.dir })
  assert.equal(execFileSync('git', ['status', '--porcelain'], { cwd: home.dir, encoding: 'utf8' }), '')
})

test('a .plat in a parent folder that other users can read is refused with the command that closes it', async () => {
  const home = await setup()
  const below = join(home.dir, 'a/b')
  mkdirSync(below, { recursive: true })
  assert.equal((await findHome(undefined, below)).home.dir, home.dir)
  chmodSync(home.env, 0o644)
  await assert.rejects(findHome(undefined, below), { message: new RegExp(`mode 644.*chmod 600 ${home.env}$`) })
  chmodSync(home.env, 0o600)
  chmodSync(dirname(home.env), 0o750)
  await assert.rejects(findHome(undefined, below), /mode 750.*chmod 700/)
  await assert.rejects(makeHome(home), /mode 750.*chmod 700/)
})

/** A folder that another user owns: root's for everyone else, a new one for root. */
function foreignFolder(): string {
  if (process.getuid?.() !== 0) return '/usr'
  const folder = tempFolder()
  chownSync(folder, 65534, 65534)
  return folder
}

test('a .plat that leads to a folder of another user is refused', async () => {
  const dir = tempFolder()
  symlinkSync(foreignFolder(), join(dir, '.plat'))
  const refusal = /\.plat belongs to another user \(uid \d+\) and is not used/
  await assert.rejects(findHome(dir), refusal)
  await assert.rejects(findHome(undefined, dir), refusal)
  await assert.rejects(makeHome(homeOf(dir)), refusal)
})

test('a .plat behind a link of the same user is used', async () => {
  const home = await setup()
  const dir = tempFolder()
  symlinkSync(dirname(home.env), join(dir, '.plat'))
  assert.equal((await findHome(dir)).home.dir, dir)
})
