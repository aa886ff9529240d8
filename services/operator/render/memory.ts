import type { MemoryFile } from '@plat/resources/rendered'
import { type Declared, keyOf, sorted } from './declared.ts'

/** MemoryStores as the gateway's memoryFile: what their schema takes can be kept. */
export function renderMemory({ memory }: Pick<Declared, 'memory'>): { file: MemoryFile } {
  return { file: { version: 1, stores: Object.fromEntries(sorted(memory).map((store) => [keyOf(store), store.spec])) } }
}
