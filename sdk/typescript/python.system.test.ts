import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { pythonWith } from '@plat/testkit/processes/python'
import { type GatewayFixture, startGround } from './testing/fixture.ts'
import { oldestAndNewest } from './testing/pythons.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const home = path.join(root, 'sdk/python')
/** Time of one run of pytest or of a type checker, in milliseconds. */
const TIMEOUT_MS = 300_000

// Installed before the first test is declared: a run ends when no declared test is left.
const pythons = await Promise.all(
  (await oldestAndNewest()).map(async ({ path: interpreter, version }) => ({
    version,
    python: await pythonWith(path.join(home, 'tests/requirements.txt'), interpreter),
  })),
)

let fixture: GatewayFixture
let dist = ''
/** The files that lead the tests in Python to the running plat. */
const files = { world: '', tokens: '' }

before(async () => {
  const dir = tempFolder()
  dist = path.join(dir, 'dist')
  await run(process.execPath, [path.join(root, 'tools/sdk/run.ts'), '-python', dist])
  fixture = await startGround()
  files.world = path.join(dir, 'world.json')
  await writeFile(files.world, JSON.stringify(fixture.addresses))
  files.tokens = path.join(dir, 'tokens.json')
  const issuer = testIssuer()
  const invalid = issuer.invalid()
  const now = Math.floor(Date.now() / 1000)
  await writeFile(files.tokens, JSON.stringify({ now, jwks: issuer.jwks(), valid: issuer.token(), invalid }))
})

after(() => fixture.close())

test('equal sources give an equal wheel and source distribution', async () => {
  const again = path.join(tempFolder(), 'dist')
  await run(process.execPath, [path.join(root, 'tools/sdk/run.ts'), '-python', again])
  const names = (await readdir(dist)).sort()
  assert.deepEqual(names.map(path.extname), ['.whl', '.gz'])
  for (const name of names)
    assert.ok((await readFile(path.join(dist, name))).equals(await readFile(path.join(again, name))), name)
})

for (const { version, python } of pythons) {
  const skip = 'missing' in python ? python.missing : false

  test(`the wheel passes pytest under Python ${version}`, { skip }, async () => {
    const { site, bin } = await installed(python)
    const env = {
      ...process.env,
      PYTHONPATH: site,
      PYTHONDONTWRITEBYTECODE: '1',
      PLAT_TEST_WORLD: files.world,
      PLAT_TEST_TOKENS: files.tokens,
    }
    const done = await attempt(bin, ['-m', 'pytest', '-rs', path.join(home, 'tests')], env)
    assert.match(done, /\d+ passed in /, done.slice(-6000))
    assert.doesNotMatch(done, /\d+ (?:skipped|failed|errors?)/, done.slice(-6000))
  })

  test(`the wheel passes mypy and pyright, both strict, under Python ${version}, its recipes mypy`, {
    skip,
  }, async () => {
    const { site, bin } = await installed(python)
    const { env } = process
    const recipes = (await readdir(path.join(home, 'recipes'))).filter((name) => name.endsWith('.py'))
    for (const name of recipes) await copyFile(path.join(home, 'recipes', name), path.join(site, name))
    const checked = ['plat_sdk', ...recipes]
    const mypy = ['-m', 'mypy', '--strict', '--no-incremental', '--cache-dir', os.devNull, ...checked]
    const typed = await attempt(bin, mypy, env, site)
    assert.match(typed, /Success: no issues found/, typed.slice(-6000))
    // Its paths are relative.
    await writeFile(
      path.join(site, 'pyrightconfig.json'),
      JSON.stringify({ typeCheckingMode: 'strict', include: ['plat_sdk'] }),
    )
    const strict = await attempt(bin, ['-m', 'pyright', '--stats', '--pythonpath', bin], env, site)
    assert.match(strict, /0 errors, 0 warnings/, strict.slice(-6000))
    assert.match(strict, /Found [2-9]\d source files/, strict.slice(-6000))
  })
}

/** A folder in which the wheel is installed, without its dependencies, and the Python that has them. */
async function installed(python: Awaited<ReturnType<typeof pythonWith>>) {
  assert.ok('path' in python)
  const site = path.join(tempFolder(), 'site')
  await mkdir(site)
  const wheel = (await readdir(dist)).find((name) => name.endsWith('.whl')) ?? assert.fail('no wheel')
  const install = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--no-index', '--target', site]
  await run(python.path, [...install, path.join(dist, wheel)])
  assert.ok(existsSync(path.join(site, 'plat_sdk/py.typed')))
  return { site, bin: python.path }
}

/** Everything that a program writes, whatever its exit code is. */
async function attempt(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd: string = tempFolder(),
): Promise<string> {
  const options = { env, timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024, cwd }
  return run(program, [...args], options).then(
    ({ stdout, stderr }) => stdout + stderr,
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  )
}
