package verdicts;

import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.opentest4j.TestAbortedException;

import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Set;

/**
 * Runs test classes, named on standard input, one a line: `CLASS` or `CLASS METHOD,METHOD` for some of its methods.
 * Prints a line for each run of a test: verdict, class, method, milliseconds, reason; and `END CLASS`, behind tabs.
 */
public final class Run implements TestExecutionListener {
    private static final PrintStream OUT = System.out;
    private final String type;
    private long from;

    private Run(String type) {
        this.type = type;
    }

    public static void main(String[] words) throws Exception {
        System.setOut(new PrintStream(OutputStream.nullOutputStream())); // what tests print
        var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            Set<String> methods = parts.length > 1 ? Set.of(parts[1].split(",")) : Set.of();
            run(parts[0], methods);
            Host.stopAll();
            say("END", parts[0], "", 0, "");
        }
        Runtime.getRuntime().halt(0); // threads that tests have left do not keep it
    }

    private static void run(String type, Set<String> methods) {
        PostDiscoveryFilter chosen = each -> FilterResult.includedIf(methods.isEmpty()
            || !(each.getSource().orElse(null) instanceof MethodSource method) || methods.contains(method.getMethodName()));
        var request = LauncherDiscoveryRequestBuilder.request().selectors(DiscoverySelectors.selectClass(type)).filters(chosen)
            .configurationParameter("junit.jupiter.execution.timeout.default", System.getProperty("verdicts.patience") + " s")
            .configurationParameter("junit.jupiter.execution.timeout.thread.mode.default", "SEPARATE_THREAD")
            .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true");
        LauncherFactory.create().execute(request.build(), new Run(type));
    }

    private static synchronized void say(String verdict, String type, String method, long ms, String reason) {
        String text = reason.replaceAll("[\\t\\r\\n]+", " ");
        OUT.println(String.join("\t", verdict, type, method, "" + ms, text.substring(0, Math.min(text.length(), 300))));
        OUT.flush();
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        from = System.currentTimeMillis();
        Host.takeMissing();
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        say("SKIP", type, name(test), 0, reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        Throwable thrown = result.getThrowable().orElse(null);
        if (!test.isTest() && thrown == null) return;
        long ms = System.currentTimeMillis() - from;
        String lacking = Host.takeMissing();
        boolean aborted = result.getStatus() == TestExecutionResult.Status.ABORTED;
        for (Throwable each = thrown; each != null; each = each.getCause()) aborted |= each instanceof TestAbortedException;
        if (thrown == null) {
            say("PASS", type, name(test), ms, "");
        } else if (aborted || lacking != null) {
            say("SKIP", type, name(test), ms, lacking != null ? lacking : thrown.getMessage() == null ? "" : thrown.getMessage());
        } else {
            Throwable cause = thrown;
            while (cause.getCause() != null && (cause.getClass() == RuntimeException.class || cause instanceof java.util.concurrent.ExecutionException)) cause = cause.getCause();
            say("FAIL", type, name(test), ms, cause.toString());
            StringWriter trace = new StringWriter();
            thrown.printStackTrace(new PrintWriter(trace));
            System.err.println("=== " + test.getUniqueId() + "\n" + trace);
        }
    }

    private static String name(TestIdentifier test) {
        if (test.getSource().orElse(null) instanceof MethodSource method) return method.getMethodName();
        return test.isTest() ? test.getDisplayName() : "(class)";
    }
}
