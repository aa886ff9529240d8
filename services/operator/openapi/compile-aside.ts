import { Worker } from 'node:worker_threads'
import { THREAD_OPTIONS, THREAD_READ_MS, WorkerThread } from '@plat/resources'
import type { Compiled, CompileInput } from './compile/compile.ts'

const thread = new WorkerThread(() => new Worker(new URL('./compile-worker.ts', import.meta.url), THREAD_OPTIONS))

/** Like `compileDocument`, on a thread with a deadline: documents are large, and their parsers cannot yield. */
export async function compileAside(input: CompileInput): Promise<Compiled | string> {
  return (await thread.ask<Compiled | string>(input)) ?? `cannot be read within ${THREAD_READ_MS / 1000} s`
}
