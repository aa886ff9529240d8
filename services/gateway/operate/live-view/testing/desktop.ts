import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'

/** Downloaded packages are unpacked here once. */
const CACHE = path.join(tmpdir(), 'plat-test-desktop')
const CHROMIUM = '/usr/bin/chromium'
/** X server, VNC server, WebSocket bridge and their libraries, as far as chromium does not bring them. */
const PACKAGES = [
  ...['bubblewrap', 'xvfb', 'xserver-common', 'x11-xkb-utils', 'xkb-data', 'libxfont2', 'libxkbfile1', 'libfontenc1'],
  ...['libgl1', 'libglvnd0', 'libpixman-1-0', 'libunwind8'],
  ...['x11vnc', 'libvncserver1', 'libvncclient1', 'liblzo2-2', 'libxtst6', 'libxinerama1', 'libxdamage1'],
  ...['python3-websockify'],
]

/** Why there is no desktop here; null if there is one. */
export function missingDesktop(): string | null {
  if (!existsSync(CHROMIUM)) return `${CHROMIUM} is missing: npm run test:browser installs it`
  try {
    unpacked()
    return null
  } catch {
    return 'packages of Debian cannot be downloaded: apt-get update'
  }
}

export interface Desktop {
  /** `http://127.0.0.1:<port>` of the bridge. */
  readonly url: string
  close(): Promise<void>
}

/** Starts chromium with a window on a virtual screen, which a VNC server shows and websockify serves: what `-browser-image` has to do. */
export async function startDesktop(page: string): Promise<Desktop> {
  const root = unpacked()
  const dir = tempFolder()
  const display = `:${100 + (process.pid % 30_000)}`
  const [vncPort, port] = [await freePort(), await freePort()]
  const children: ChildProcess[] = []
  const start = (command: string, args: readonly string[], env: NodeJS.ProcessEnv) => {
    const child = spawn(command, args, { stdio: 'ignore', env: { ...process.env, ...env } })
    child.on('error', () => {})
    children.push(child)
  }
  const libraries = { LD_LIBRARY_PATH: librariesIn(root) }
  // The X server runs /usr/bin/xkbcomp, whatever the PATH is.
  const isolated = ['--ro-bind', '/', '/', '--ro-bind', `${root}/usr/bin`, '/usr/bin', '--dev-bind', '/dev', '/dev']
  const x = [display, '-screen', '0', '640x480x24', '-nolisten', 'tcp', '-ac']
  start(`${root}/usr/bin/bwrap`, [...isolated, '--bind', '/tmp', '/tmp', '--die-with-parent', 'Xvfb', ...x], libraries)
  await until(() => existsSync(`/tmp/.X11-unix/X${display.slice(1)}`), 'the X server')
  const vnc = ['-display', display, '-rfbport', String(vncPort), '-localhost', '-nopw', '-forever', '-shared']
  start(`${root}/usr/bin/x11vnc`, [...vnc, '-noxdamage', '-quiet', '-norc'], libraries)
  const bridge = ['-m', 'websockify', `127.0.0.1:${port}`, `127.0.0.1:${vncPort}`]
  start('python3', bridge, { PYTHONPATH: `${root}/usr/lib/python3/dist-packages` })
  const browser = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--kiosk', '--window-size=640,480']
  start(CHROMIUM, [...browser, '--window-position=0,0', `--user-data-dir=${dir}`, page], { DISPLAY: display })
  await until(async () => (await answers(vncPort)) && answers(port), 'the VNC server and its bridge')
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const ended = children.map(
        (child) => new Promise<void>((done) => (child.exitCode === null ? child.once('exit', () => done()) : done())),
      )
      for (const child of children.toReversed()) child.kill('SIGKILL')
      await Promise.all(ended)
    },
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** Folder with the files of all packages. Throws where they cannot be downloaded. */
function unpacked(): string {
  const root = path.join(CACHE, 'root')
  if (existsSync(root)) return root
  const partial = `${CACHE}/partial.${process.pid}`
  mkdirSync(partial, { recursive: true })
  execFileSync('apt-get', ['download', '-q', '-o', 'Acquire::Retries=5', ...PACKAGES], { cwd: partial, stdio: 'pipe' })
  for (const name of readdirSync(partial).filter((file) => file.endsWith('.deb')))
    execFileSync('dpkg-deb', ['-x', name, 'root'], { cwd: partial })
  // It runs its keyboard compiler by a shell.
  copyFileSync('/bin/sh', path.join(partial, 'root/usr/bin/sh'))
  renameSync(path.join(partial, 'root'), root)
  rmSync(partial, { recursive: true })
  return root
}

function librariesIn(root: string): string {
  const [triplet = ''] = readdirSync(path.join(root, 'usr/lib')).filter((name) => name.endsWith('-linux-gnu'))
  return [path.join(root, 'usr/lib', triplet), path.join(root, 'lib', triplet)].join(':')
}
