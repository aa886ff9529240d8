import { rmSync } from 'node:fs'
import path from 'node:path'
import { buildSdk } from './build.ts'
import { buildPythonSdk } from './python.ts'

/**
 * `npm run build:sdk [folder]` writes the npm package that is published, `npm run build:sdk:python [folder]` the wheel and the source distribution.
 */
const root = path.resolve(import.meta.dirname, '../..')
const isPython = process.argv[2] === '-python'
const out = path.resolve(root, process.argv[isPython ? 3 : 2] ?? `sdk/${isPython ? 'python' : 'typescript'}/dist`)
rmSync(out, { recursive: true, force: true })
if (isPython) await buildPythonSdk(root, out)
else buildSdk(root, out)
console.log(`built ${path.relative(root, out)}`)
