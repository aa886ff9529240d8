import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'

const ROOT = path.resolve(import.meta.dirname, '../..')
const HEADING = '## Five minutes to the first governed call'
const [, SECTION = ''] = readFileSync(path.join(ROOT, 'docs/install.md'), 'utf8').split(`\n${HEADING}\n`)
/** The code blocks of the section, in order. */
const BLOCKS = [...(SECTION.split('\n## ')[0] ?? '').matchAll(/^```(\w+)\n(.*?)^```/gms)]
/** The files of the section, by the language of their block. */
const FILES: Readonly<Record<string, string>> = {
  json: '.mcp.json',
  js: 'agent.mjs',
  yaml: 'resources/toolpolicies/default/assistant.yaml',
}
const MIB = 1024 * 1024

/** Limit of the unpacked package, without the runtime. */
const PACKAGE_BYTES = 60 * MIB
/** Limit of a user's `node_modules`, with the runtime. */
const INSTALLED_BYTES = 215 * MIB

/** Maximum time from the empty folder to the end of the section, in milliseconds. */
const SECTION_MS = 300_000

const servers: (() => Promise<void>)[] = []
after(async () => {
  for (const close of servers) await close()
})

const tarball = pack()

/** Builds the package and packs it, as the pinned Node does from the repository. */
function pack(): string {
  const folder = tempFolder()
  execFileSync(process.execPath, [path.join(ROOT, 'tools/package/run.ts'), path.join(folder, 'package')])
  const output = execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: path.join(folder, 'package'),
    encoding: 'utf8',
  })
  return path.join(folder, output.trim())
}

/** The folder of the first Node of this major version, without those of npm. */
function nodeFolder(major: number): string | null {
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter((folder) => !folder.includes('node_modules'))
  return [path.dirname(process.execPath), ...folders].find((folder) => isMajor(folder, major)) ?? null
}

function isMajor(folder: string, major: number): boolean {
  const node = path.join(folder, 'node')
  return existsSync(node) && execFileSync(node, ['-v'], { encoding: 'utf8' }).startsWith(`v${major}.`)
}

/** Each file below a folder with its size, without following links. */
function bytesIn(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(path.join(entry.parentPath, entry.name)).size, 0)
}

/** An empty folder of a user with a Node of `folder` first on the PATH, and npm as it is configured here. */
function userWith(node: string) {
  const folder = tempFolder()
  const setting = (name: string) => execFileSync('npm', ['config', 'get', name], { encoding: 'utf8' }).trim()
  const npm = { npm_config_cache: setting('cache'), npm_config_registry: setting('registry') }
  const PATH = `${node}${path.delimiter}/usr/bin${path.delimiter}/bin`
  return { folder, env: { PATH, HOME: folder, LC_ALL: 'C', npm_config_prefer_offline: 'true', ...npm } }
}

type User = ReturnType<typeof userWith>

/** Runs a command of a user and returns its output. */
function run({ folder, env }: User, command: string): string {
  return execFileSync('/bin/sh', ['-ec', command], { cwd: folder, env, encoding: 'utf8' })
}

/** Installs the packed package and returns the size of `node_modules`. */
function install(user: User, flags: readonly string[]): number {
  run(user, `npm install ${flags.join(' ')} ${tarball}`)
  return bytesIn(path.join(user.folder, 'node_modules'))
}

/** Ends a program and, where it is traced, its tracer. */
async function stopped(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  signalGroup(child, 'SIGTERM')
  await ended
}

function signalGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal)
}

/** Starts `plat up` on free ports, and waits until it is up. Where strace is installed it records the files that are opened. */
async function startPlat({ folder, env }: User, trace: string | null) {
  const bin = path.join(folder, 'node_modules/@plat-gov/cli/bin/plat.mjs')
  const plat = [bin, 'up', '.', '-listen', '127.0.0.1:0', '-identity-listen', '127.0.0.1:0']
  const traced = trace === null ? [] : ['strace', '-f', '-qq', '-e', 'trace=open,openat,execve', '-o', trace]
  const [program = 'node', ...args] = [...traced, 'node', ...plat]
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  let screen = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (screen += text))
  servers.push(async () => signalGroup(child, 'SIGKILL'))
  const printed = async (expected: RegExp) => {
    await until(
      () => expected.test(screen) || child.exitCode !== null,
      () => screen,
    )
    assert.equal(child.exitCode, null, screen)
  }
  await printed(/Run a program as an agent: /)
  return { child, printed }
}

/** Files of the repository that a traced program opened or ran. */
function openedInRepository(trace: string): readonly string[] {
  const names = [...readFileSync(trace, 'utf8').matchAll(/(?:open|openat|execve)\((?:AT_FDCWD, )?"([^"]+)"/g)]
  assert.ok(names.length > 100)
  return names.map(([, name = '']) => name).filter((name) => name.startsWith(`${ROOT}/`) && !isRuntime(name))
}

/** The Node of this test is the system's Node of a user. */
function isRuntime(file: string): boolean {
  return file.startsWith(path.dirname(path.dirname(process.execPath)))
}

const strace = ['/usr/bin/strace', '/bin/strace'].some((file) => existsSync(file))

/**
 * Follows the section: writes its files and runs its commands, block by block. Only the address of the package, the ports and the folder of strace
 * are those of the test. Returns what each block printed.
 */
async function follow(
  user: User,
  { flags, trace }: { readonly flags: readonly string[]; readonly trace: string | null },
) {
  const printed: string[] = []
  let plat: Awaited<ReturnType<typeof startPlat>> | null = null
  for (const [, language = '', text = ''] of BLOCKS) {
    const file = FILES[language]
    if (file !== undefined) {
      writeFileSync(path.join(user.folder, file), text)
      if (language !== 'yaml') continue
      await plat?.printed(/changed: ToolPolicy default\/assistant; in force within 2 s/)
      await sleep(2000)
    } else if (text.trim() === 'npx --no plat up') {
      plat = await startPlat(user, trace)
    } else {
      printed.push(run(user, text.replace('@plat-gov/cli', `${flags.join(' ')} ${tarball}`)))
    }
  }
  assert.ok(plat !== null)
  await stopped(plat.child)
  return printed
}

const kinds = [
  { name: 'Node 20, with the Node that npm installs', major: 20, flags: [] },
  { name: 'Node 26, without another one', major: 26, flags: ['--omit=optional'] },
]

for (const { name, major, flags } of kinds) {
  const node = nodeFolder(major)
  describe(`the packed package on ${name}`, { skip: node === null ? `no Node ${major} on the PATH` : false }, () => {
    test('docs/install.md leads to a governed call that the ledger proves, and nothing of the repository is read', {
      timeout: SECTION_MS,
    }, async () => {
      const user = userWith(node ?? '')
      const trace = strace ? path.join(user.folder, 'trace') : null
      const [, , initialised = '', first = '', last = ''] = await follow(user, { flags, trace })
      assert.match(initialised, /^wrote resources\/mcpservers\/default\/everything\.yaml$/m)
      assert.match(initialised, /^next: npx --no plat up$/m)
      assert.equal(first, 'Echo: hello\nThe sum of 2 and 3 is 5.\n')
      const [echo, refused, verified] = last.split('\n')
      assert.equal(echo, 'Echo: hello')
      assert.match(refused ?? '', /^get-sum was not run: no rule of policy default\/assistant allows this/)
      assert.match(verified ?? '', /^valid: \d+ records/)
      if (trace !== null) assert.deepEqual(openedInRepository(trace), [])
    })

    test('it weighs no more than its limit', () => {
      const user = userWith(node ?? '')
      const bytes = install(user, flags)
      assert.ok(bytes < (major === 26 ? PACKAGE_BYTES : INSTALLED_BYTES), `${bytes} bytes`)
      assert.match(run(user, 'npx --no plat version'), /version +\d+\.\d+\.\d+[\s\S]*node26\./)
    })
  })
}

test('every program of the package starts, has its data files, and the licenses of its libraries', () => {
  const user = userWith(path.dirname(process.execPath))
  install(user, ['--omit=optional'])
  const { folder, env } = user
  const home = path.join(folder, 'node_modules/@plat-gov/cli')
  const { bin, version } = JSON.parse(readFileSync(path.join(home, 'package.json'), 'utf8'))
  assert.deepEqual(Object.keys(bin).toSorted(), [
    'plat',
    'plat-attestation',
    'plat-gateway',
    'plat-identity',
    'plat-operator',
  ])
  for (const name of Object.keys(bin)) {
    const output = execFileSync(
      path.join(folder, 'node_modules/.bin', name),
      [name === 'plat' ? '--version' : '-version'],
      {
        env,
        encoding: 'utf8',
      },
    )
    assert.ok(output.includes(version), `${name}: ${output}`)
  }
  const data = readdirSync(path.join(home, 'dist/app/data'), { recursive: true }).map(String)
  for (const file of ['cedar_wasm_bg.wasm', 'intel.pem', 'amd.pem', 'us-east-1.pem'])
    assert.ok(
      data.some((name) => path.basename(name) === file),
      file,
    )
  const threads = readdirSync(path.join(home, 'dist/app')).filter((file) => file.startsWith('thread-'))
  assert.ok(threads.length >= 2)
  const notice = readFileSync(path.join(home, 'NOTICE'), 'utf8')
  for (const library of ['fastify', 'typebox', 're2js', '@cedar-policy/cedar-wasm', 'pg'])
    assert.match(notice, new RegExp(`^${library} \\d`, 'm'))
})
