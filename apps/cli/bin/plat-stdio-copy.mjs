#!/usr/bin/env node
import { launch } from '@plat/process/launch'

await launch(new URL('../stdio/pod/copy.ts', import.meta.url))
