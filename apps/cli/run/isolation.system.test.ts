import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { before, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { unpackDebianPackage } from '@plat/testkit/processes/debian'
import { until } from '@plat/testkit/until'
import { homeOf, makeHome, type PlatFolder, writePrivate } from '../shared/home.ts'
import { chooseIsolation } from './isolation.ts'
import { runProgram } from './program.ts'

/** A governed directory with one key, one policy and the folder of one run. */
async function setup(): Promise<{ readonly home: PlatFolder; readonly folder: string }> {
  const home = homeOf(tempFolder())
  await makeHome(home)
  await writePrivate(home.env, 'PLAT_ADMIN_TOKEN=admin\n')
  await writePrivate(home.gatewayConfig, JSON.stringify({ pricesFile: join(home.dir, 'prices.json') }))
  await writeFile(join(home.dir, 'prices.json'), '{}')
  await mkdir(join(home.dir, 'resources/toolpolicies'), { recursive: true })
  await writeFile(join(home.dir, 'resources/toolpolicies/a.yaml'), 'rules: []\n')
  const folder = join(home.runs, 'run-a')
  await mkdir(join(folder, 'tmp'), { recursive: true })
  await writeFile(join(folder, 'mcp.json'), '{}')
  return { home, folder }
}

/** Runs a shell script isolated. Returns its exit code and what it wrote to the file `$OUT`. */
async function isolated(
  script: string,
  { home, folder }: Awaited<ReturnType<typeof setup>>,
  governed: PlatFolder | null = home,
) {
  const out = join(home.dir, 'out')
  await writeFile(out, '')
  const isolation = chooseIsolation('on', governed, folder)
  assert.ok(isolation.isolated)
  const code = await runProgram(['sh', '-c', script], { ...process.env, OUT: out, PLAT: dirname(home.env) }, isolation)
  return { code, text: await readFile(out, 'utf8') }
}

before(() => {
  process.env.PLAT_CONTEXTS = join(tempFolder(), 'plat', 'contexts.json')
  if ((process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'bwrap')))) return
  process.env.PATH = `${join(unpackDebianPackage('bubblewrap', tempFolder()), 'usr/bin')}:${process.env.PATH}`
})

test('an isolated program sees of .plat only the folder of its run', async () => {
  const { code, text } = await isolated(
    'find "$PLAT" -type f >"$OUT"; cat "$PLAT/env" 2>>"$OUT"; exit 7',
    await setup(),
  )
  assert.equal(code, 7)
  assert.match(text, /^\S+\/run\/run-a\/mcp\.json\n.*env: No such file/)
})

test('an isolated program sees neither logins, nor those that follow, nor files with tokens', async (t) => {
  const of = await setup()
  const config = tempFolder()
  const file = join(config, 'token')
  const before = { contexts: process.env.PLAT_CONTEXTS, token: process.env.PLAT_ADMIN_TOKEN_FILE }
  process.env.PLAT_CONTEXTS = join(config, 'plat', 'contexts.json')
  process.env.PLAT_ADMIN_TOKEN_FILE = file
  t.after(() => {
    for (const [name, value] of [
      ['PLAT_CONTEXTS', before.contexts],
      ['PLAT_ADMIN_TOKEN_FILE', before.token],
    ] as const) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  })
  await mkdir(join(config, 'plat'))
  await writeFile(join(config, 'plat', 'logins.json'), 'refresh-token')
  await writeFile(file, 'static-token')
  const remote = await isolated(`cat ${config}/plat/* ${file} >>"$OUT" 2>/dev/null; true`, of, null)
  assert.equal(remote.text, '')
  const local = await isolated(`cat ${config}/plat/* ${file} >>"$OUT" 2>/dev/null; true`, of)
  assert.equal(local.text, '')
})

test('an isolated program does not find the keys by way of another process', async () => {
  const { text } = await isolated(
    `cat /proc/${process.pid}/root$PLAT/env >>"$OUT" 2>&1; ls /proc | grep -c '^[0-9]' >>"$OUT"`,
    await setup(),
  )
  assert.match(text, /No such file/)
  assert.ok(Number(text.trim().split('\n').at(-1)) < 10, text)
})

test('an isolated program can neither change, replace nor move away the files that govern it', async () => {
  const of = await setup()
  const attempts = [
    'echo x >> resources/toolpolicies/a.yaml',
    'rm resources/toolpolicies/a.yaml',
    'mv resources moved',
    'echo x > prices.json',
    'echo x > new && mv new prices.json',
    `umount ${of.home.dir}/.plat`,
    `mount --bind ${of.home.dir} /mnt`,
    `mv ${of.home.dir} ${of.home.dir}.moved`,
  ]
  const script = attempts.map((attempt) => `(cd ${of.home.dir}; ${attempt}) 2>/dev/null && echo "${attempt}" >>"$OUT"`)
  const { text } = await isolated(`${script.join('\n')}\ntrue`, of)
  assert.equal(text, '')
  assert.equal(await readFile(join(of.home.dir, 'resources/toolpolicies/a.yaml'), 'utf8'), 'rules: []\n')
})

test('an isolated program cannot type into the terminal', async () => {
  const python = 'import fcntl\ntry:\n  fcntl.ioctl(0, 0x5412, b"x")\nexcept OSError as e:\n  print(e.errno)'
  const { text } = await isolated(`python3 -c '${python}' >"$OUT" < /dev/null`, await setup())
  assert.equal(text, '1\n', 'EPERM by the filter; /dev/null itself would say ENOTTY')
})

test('a signal for plat run reaches the isolated program, which decides what to do', async () => {
  const of = await setup()
  const script = 'trap "echo stopped >>$OUT; exit 3" TERM; echo ready >>$OUT; while :; do sleep 0.05; done'
  const ending = isolated(script, of)
  await until(
    async () => (await readFile(join(of.home.dir, 'out'), 'utf8').catch(() => '')) === 'ready\n',
    'the program',
  )
  process.emit('SIGTERM')
  const { code, text } = await ending
  assert.deepEqual([code, text], [3, 'ready\nstopped\n'])
})

test('a program that does not exist ends with exit code 127 or 1 and no hang', async () => {
  const { home, folder } = await setup()
  const code = await runProgram(['/no/such/program'], process.env, chooseIsolation('on', home, folder))
  assert.ok(code === 127 || code === 1, String(code))
})
