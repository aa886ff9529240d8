import { parentPort } from 'node:worker_threads'
import { type CompileInput, compileDocument } from './compile/compile.ts'

/** Worker thread of `compileAside`. A thrown error ends it. */
parentPort?.on('message', (input: CompileInput) => parentPort?.postMessage(compileDocument(input)))
