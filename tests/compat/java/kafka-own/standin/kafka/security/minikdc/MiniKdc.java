package kafka.security.minikdc;

import verdicts.Host;

import java.io.File;
import java.util.List;
import java.util.Properties;

/** Stands in for the Kerberos server of Kafka's tests, which needs ApacheDS: MIT's programs are the server. */
public class MiniKdc {
    private static final String SETTING = "java.security.krb5.conf";

    public MiniKdc(Properties settings, File directory) { }

    public static Properties createConfig() {
        return new Properties();
    }

    public void start() throws ReflectiveOperationException {
        System.setProperty(SETTING, Host.startKerberos());
        refresh();
    }

    public void stop() throws ReflectiveOperationException {
        Host.stopKerberos();
        System.clearProperty(SETTING);
        refresh();
    }

    public void createPrincipal(File keytab, List<String> principals) {
        Host.addToKerberos(keytab, principals);
    }

    private static void refresh() throws ReflectiveOperationException {
        Class.forName("sun.security.krb5.Config").getMethod("refresh").invoke(null);
    }
}
