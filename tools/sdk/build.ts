import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { gather } from './gather.ts'

const HOME = 'sdk/typescript'

/** The oldest Node that has all that the package uses: `crypto.hash`. */
const NODE = '>=20.12'

/**
 * Builds the published package of the SDK into an empty folder: JavaScript, types, its own `package.json`, no dependency.
 *
 * @throws Error with what the compiler says.
 */
export function buildSdk(root: string, out: string): void {
  const staged = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
  try {
    for (const [file, text] of gather(root, `${HOME}/index.ts`)) write(path.join(staged, 'src', file), text)
    write(path.join(staged, 'package.json'), '{"type": "module"}')
    write(path.join(staged, 'tsconfig.json'), JSON.stringify(configOf(root, out)))
    const tsc = path.join(root, 'node_modules/.bin/tsc')
    const done = spawnSync(tsc, ['--project', staged], { encoding: 'utf8' })
    if (done.status !== 0) throw new Error(`the SDK does not compile:\n${done.stdout}${done.stderr}`)
  } finally {
    rmSync(staged, { recursive: true, force: true })
  }
  write(path.join(out, 'package.json'), `${JSON.stringify(manifest(root), null, 2)}\n`)
  cpSync(path.join(root, HOME, 'README.md'), path.join(out, 'README.md'))
  cpSync(path.join(root, 'LICENSE'), path.join(out, 'LICENSE'))
}

function write(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, text)
}

function configOf(root: string, out: string): object {
  const { compilerOptions } = JSON.parse(readFileSync(path.join(root, 'tsconfig.json'), 'utf8'))
  return {
    compilerOptions: {
      ...compilerOptions,
      noEmit: false,
      allowImportingTsExtensions: false,
      // APIs that the oldest Node lacks do not compile.
      target: 'es2023',
      lib: ['es2023', 'es2024.string', 'esnext.disposable'],
      typeRoots: [path.join(root, 'node_modules/@types')],
      rootDir: 'src',
      outDir: path.join(out, 'lib'),
      declaration: true,
      newLine: 'lf',
    },
    include: ['src'],
  }
}

/** Manifest for the registry. */
function manifest(root: string): object {
  const { name, version, description, license, type } = JSON.parse(
    readFileSync(path.join(root, HOME, 'package.json'), 'utf8'),
  )
  return {
    ...{ name, version, description, license, type },
    engines: { node: NODE },
    sideEffects: false,
    exports: { '.': { types: './lib/index.d.ts', default: './lib/index.js' } },
    files: ['lib', 'README.md', 'LICENSE'],
  }
}
