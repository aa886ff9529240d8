import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { startEverything } from '@plat/testkit/mcp/everything'
import { until } from '@plat/testkit/until'

const ROOT = path.resolve(import.meta.dirname, '../..')
const PAGE = readFileSync(path.join(import.meta.dirname, 'README.md'), 'utf8')
const MIB = 1024 * 1024

/** Limit of the unpacked package, without the runtime. */
const PACKAGE_BYTES = 60 * MIB
/** Limit of a user's `node_modules`, with the runtime. */
const INSTALLED_BYTES = 215 * MIB

/** Packages that the page has installed from the registry beside this one. */
const COUNTERPARTS = ['@modelcontextprotocol/client', '@modelcontextprotocol/server-everything']

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

function blockOf(language: string): string {
  const [, block = ''] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(PAGE) ?? []
  return block
}

/** The commands of the page. */
const commands = [...PAGE.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block = '']) => block.trim().split('\n'))

/** Folder of a user with the package installed, whose programs run on a Node of `major`. */
function install(node: string, flags: readonly string[]) {
  const folder = tempFolder()
  const env = { PATH: `${node}${path.delimiter}/usr/bin${path.delimiter}/bin`, HOME: folder, LC_ALL: 'C' }
  const cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim()
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  const npm = (...args: string[]) =>
    execFileSync('npm', args, { cwd: folder, env: { ...env, npm_config_cache: cache, npm_config_registry: registry } })
  npm('init', '-y')
  npm('install', '--prefer-offline', ...flags, tarball)
  const weight = bytesIn(path.join(folder, 'node_modules'))
  for (const name of COUNTERPARTS) {
    mkdirSync(path.dirname(path.join(folder, 'node_modules', name)), { recursive: true })
    symlinkSync(path.join(ROOT, 'node_modules', name), path.join(folder, 'node_modules', name))
  }
  return { folder, env, weight }
}

/** Runs a command of the page, with more arguments, and returns its output. */
function run({ folder, env }: { folder: string; env: NodeJS.ProcessEnv }, command: string, ...more: string[]): string {
  assert.ok(commands.includes(command), `${command}: is not on the page`)
  return execFileSync('/bin/sh', ['-c', [command, ...more].join(' ')], { cwd: folder, env, encoding: 'utf8' })
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

/** Starts `plat up` on free ports, and returns what it printed when it is up. Where strace is installed it records the files that are opened. */
async function startPlat({ folder, env }: { folder: string; env: NodeJS.ProcessEnv }, trace: string | null) {
  const bin = path.join(folder, 'node_modules/@plat-gov/cli/bin/plat.mjs')
  const plat = [bin, 'up', '.', '-listen', '127.0.0.1:0', '-identity-listen', '127.0.0.1:0']
  const traced = trace === null ? [] : ['strace', '-f', '-qq', '-e', 'trace=open,openat,execve', '-o', trace]
  const [program = 'node', ...args] = [...traced, 'node', ...plat]
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  let screen = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (screen += text))
  servers.push(async () => signalGroup(child, 'SIGKILL'))
  await until(
    () => /policies {5}default\/assistant/.test(screen) || child.exitCode !== null,
    () => screen,
  )
  assert.equal(child.exitCode, null, screen)
  return child
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

const kinds = [
  { name: 'Node 20, with the Node that npm installs', major: 20, flags: [] },
  { name: 'Node 26, without another one', major: 26, flags: ['--omit=optional'] },
]

for (const { name, major, flags } of kinds) {
  const node = nodeFolder(major)
  describe(`the packed package on ${name}`, { skip: node === null ? `no Node ${major} on the PATH` : false }, () => {
    test('its page leads to a governed call that the ledger proves, and it reads nothing of the repository', async () => {
      const user = install(node ?? '', flags)
      assert.ok(user.weight < (major === 26 ? PACKAGE_BYTES : INSTALLED_BYTES), `${user.weight} bytes`)
      assert.match(run(user, 'npx --no plat version'), /version +\d+\.\d+\.\d+[\s\S]*node26\./)
      assert.match(run(user, 'npx --no plat version', '&& npx --no plat help'), /Usage: plat/)

      const everything = await startEverything()
      servers.push(() => everything.close())
      mkdirSync(path.join(user.folder, 'resources'))
      const resources = blockOf('yaml').replace('http://127.0.0.1:3001/mcp', everything.url)
      assert.notEqual(resources, blockOf('yaml'))
      writeFileSync(path.join(user.folder, 'resources/first.yaml'), resources)
      writeFileSync(path.join(user.folder, 'agent.mjs'), blockOf('js'))

      const trace = strace ? path.join(user.folder, 'trace') : null
      const plat = await startPlat(user, trace)
      const printed = run(user, 'npx --no plat run assistant -- node agent.mjs').split('\n')
      assert.equal(printed[0], 'Echo: hello')
      assert.match(printed[1] ?? '', /get-env was not run: no rule of policy default\/assistant allows this/)
      assert.match(run(user, 'npx --no plat audit verify'), /^valid: \d+ records/)
      await stopped(plat)
      if (trace !== null) assert.deepEqual(openedInRepository(trace), [])
    })
  })
}

test('every program of the package starts, has its data files, and the licenses of its libraries', () => {
  const { folder, env } = install(path.dirname(process.execPath), ['--omit=optional'])
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
