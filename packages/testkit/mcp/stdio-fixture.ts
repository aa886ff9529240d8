/** The fixture as a program on stdin and stdout. */
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { fixtureServer } from './fixture.ts'

serveStdio(({ era }) => fixtureServer(era))
